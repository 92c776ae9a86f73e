"""Calls of CUDA and GPU memory, and room for pools in host memory."""

from analysis.base.limits import allocatable_bytes
from analysis.measure.memory import (
    CudaError,
    DeviceArray,
    cuda,
    cudart,
    largest_pool,
    on_gpu,
    synchronize,
)
