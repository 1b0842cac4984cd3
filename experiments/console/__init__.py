"""Terminal output of the commands: data on stdout, progress and errors on stderr, and exit codes."""
