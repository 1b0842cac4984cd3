"""What a command says in the terminal: data on stdout, progress and errors on stderr, and exit codes."""
