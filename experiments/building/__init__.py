"""Making benchmarks, and importing the results of other tools."""
