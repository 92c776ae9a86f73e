"""Allocators on a GPU: reuse across streams."""

import numpy as np
import pytest
from cuda.bindings import runtime as cudart

from analysis.measure.memory import cuda, synchronize
from kernels.common.arrays import pinned
from tests.compiled import gpu_module
from tests.kernels.phases.modules import MIB, STUDY
from tests.repository import STUDIES

pytestmark = pytest.mark.gpu
BLOCK = 8 * MIB
OF_STREAMS = ["p4_final", "p5_streams", "p5_dropin", "p6_mapped", "p7_ordered"]


@pytest.mark.parametrize("name", [*OF_STREAMS, "p3_block_pool"])
def test_no_stream_reads_memory_that_another_has_overwritten(name: str) -> None:
    """One stream fills blocks, and another copies them, slowly, after they have been freed. The
    phases of the write-up know no streams."""
    study = STUDIES["fragmentation"] if name in ("p6_mapped", "p7_ordered") else STUDY
    module = gpu_module(study, name)
    writer, reader = (int(cuda(cudart.cudaStreamCreateWithFlags(1))) for _ in range(2))
    filled = cuda(cudart.cudaEventCreate())
    allocator = module.Allocator(module.DriverSource())
    copies = pinned((40, BLOCK), np.uint8)
    for tag, copy in enumerate(copies):
        block = allocator.allocate(BLOCK, stream=writer)
        cuda(cudart.cudaMemsetAsync(block, tag, BLOCK, writer))
        cuda(cudart.cudaEventRecord(filled, writer))
        cuda(cudart.cudaStreamWaitEvent(reader, filled, 0))
        cuda(
            cudart.cudaMemcpyAsync(
                copy.ctypes.data, block, BLOCK, cudart.cudaMemcpyKind.cudaMemcpyDefault, reader
            )
        )
        allocator.record_stream(block, reader)
        allocator.free(block)
    synchronize(reader)
    is_right = [bool((copy == tag).all()) for tag, copy in enumerate(copies)]
    assert all(is_right) == (name in OF_STREAMS)
