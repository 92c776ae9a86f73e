"""Compares two sets of runs: different, equal within a margin or undecided, with a false-alarm rate
for the whole table."""
