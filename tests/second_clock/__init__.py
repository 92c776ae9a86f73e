"""A second clock: a plain C++ and CUDA program that times what the engine has just timed.

The engine's clocks are NVBench for device times and kernels/common/host_clock.h for host times. The
second clock is second_clock.cu. It shares no code with them, and nothing of NVBench:

- Device times: a spinning kernel holds the stream until everything is enqueued, between two events.
- Host times: the steady clock around the launch and the wait for the stream.

Both clocks time the same built modules, bound by the same workload, in one visit of one process.
`addresses` of a bound object are a C function and its argument. Through them, the second clock does
the work as C++ does, without Python. The state before a launch is the same: the reset, a flushed
L2, an idle stream.

    python -m tests.second_clock

compares the two on a machine with a GPU and prints a table. It needs nvcc.
"""
