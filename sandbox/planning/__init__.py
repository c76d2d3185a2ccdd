"""From a request to operations: pure, for either platform."""
