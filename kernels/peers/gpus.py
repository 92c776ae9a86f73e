"""Peer access of the GPUs in use, and a wait for all of them."""

from __future__ import annotations

from itertools import permutations

from cuda.bindings import runtime as cudart

from analysis.api.memory import cuda, on_gpu


def connect(count: int) -> None:
    """Let each of the first `count` GPUs access the memory of each other one. Idempotent."""
    for gpu, peer in permutations(range(count), 2):
        with on_gpu(gpu):
            result = cudart.cudaDeviceEnablePeerAccess(peer, 0)
            if result[0] == cudart.cudaError_t.cudaErrorPeerAccessAlreadyEnabled:
                cudart.cudaGetLastError()  # clears the error for later calls
            else:
                cuda(result)


def synchronize(count: int) -> None:
    """Wait for all work of the first `count` GPUs."""
    for gpu in range(count):
        with on_gpu(gpu):
            cuda(cudart.cudaDeviceSynchronize())
