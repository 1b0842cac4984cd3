"""Do the probes measure what they say? Answers from dose series of organisms, whose truth is known."""
