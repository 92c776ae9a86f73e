"""A second clock: a plain C++ and CUDA program that times what the engine has just timed.

The engine's clocks are NVBench for device times and kernels/common/host_clock.h for host times. The
second clock shares no code with them. Both time the same built modules, bound by the same workload,
in one visit of one process.
"""
