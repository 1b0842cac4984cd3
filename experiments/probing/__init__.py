"""One probing: which probes there are, on which cases they run, and what is kept of them."""
