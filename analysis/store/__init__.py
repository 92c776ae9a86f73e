"""Results on disk: samples, provenance and captures of every machine, and published figures."""

METHOD_VERSION = 2
"""Of the way of measuring. Results of another one are stale, and measured again where they can be.

1: a cell's first host time came right after its device times, and what a check left in the CPU's
   caches stayed there
2: a launch that is not timed comes between; what is read from host memory is in no cache; streams
   are released at random times
"""
