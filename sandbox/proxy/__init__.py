"""The proxy of a task, through which it reaches host names and loopback ports; and the policy it holds to."""
