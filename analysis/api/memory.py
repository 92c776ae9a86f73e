"""Memory of the host and of GPUs."""

from analysis.base.memory_limit import allocatable_bytes
from analysis.measure.host_memory import Bytes, HostMemory
from analysis.measure.large_pool import TILE, LargePool, largest_pool
from analysis.measure.memory import (
    DeviceArray,
    cuda,
    cudart,
    first_difference,
    managed,
    move_to_host,
    on_gpu,
    pinned,
    same_bytes,
    synchronize,
    wrong_byte,
)
