"""Compares two sets of results, or two NVBench files: faster, slower, same or undecided, with a
false-alarm rate for the whole table."""
