"""What the commands write to a terminal: data on stdout, progress and errors on stderr.

``printing`` (data, as text or JSON; progress as bars), ``exits`` (errors in one line, and exit codes).
"""
