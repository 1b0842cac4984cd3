"""Tests whether the probes measure what they claim to, on dose series of organisms whose truth is known."""
