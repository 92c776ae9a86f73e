"""A second clock: a plain C++ and CUDA program that times what the engine has just timed.

The engine's clocks are NVBench for device times and kernels/common/host_clock.h for host times. The
second clock, second_clock.cu, shares no code with them. Both time the same built modules, bound by
the same workload, in one visit of one process. Through `addresses` of a bound object, a C function
and its argument, the second clock does the work without Python, after the same reset and flush.

`python -m tests.second_clock` compares the two on a machine with a GPU and prints a table.
"""
