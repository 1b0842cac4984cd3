"""What asking costs, measured by one command."""
