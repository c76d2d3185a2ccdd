"""From a request to a plan, for either platform. Pure."""
