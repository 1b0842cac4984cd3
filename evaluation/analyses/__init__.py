"""Analyses over graded rows of one or several runs, as the four papers report them."""
