"""Values of the contract as JSON."""
