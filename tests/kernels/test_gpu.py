"""Only a GPU can show that kernels are right: all variants in small cases. Memory on a GPU."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from cuda.bindings import runtime as cudart

from analysis.measure.cell import Operation, Skip
from analysis.measure.memory import cuda, synchronize
from analysis.study import CaseValue, Study, Variant
from analysis.toolchain.peers import unusable
from kernels.common.arrays import pinned
from kernels.common.large_pool import KINDS
from tests.compiled import gpu_module
from tests.conformance.binding import Values, bound, outcome
from tests.kernels.pinning import test_pinning as pinning
from tests.kernels.pinning.test_pinning import PINNING
from tests.repository import STUDIES

pytestmark = pytest.mark.gpu

MIB = 2**20
CONSTANTS = {
    # Beyond the reach of the TLB: from a smaller pool, CPU threads pack nothing.
    "decode_step": {"layers": 5, "largest_pool_mib": 640},
    "h2d_gather": {"total_cpu_slots": 4096, "total_gpu_slots": 4096},
    "pool_gather": {"largest_pool_mib": 3072},
    "translation": {"pool_mib": 128, "kinds_mib": 64, "largest_bytes": 2 * MIB},
}


def of_translation(variant: Variant) -> list[Values]:
    if "reads" in variant.cases[0].values:
        walk: Values = {"count": 64, "stride_kib": 64, "reads": 4096, "order": "random"}
        kinds = KINDS if variant.name == "independent_lines" else ()
        more: Values = {"count": 1000, "stride_kib": 4, "reads": 9999, "order": "ascending"}
        return [walk, {**walk, **more}, *({**walk, "memory": kind} for kind in kinds)]
    rows = [(656, 1000), (4096, 200), (16, 33)]
    return [
        {"row_bytes": size, "rows": count, "order": "random", "pool_mib": 1}
        for size, count in rows[: 3 if variant.name == "rows" else 2 - (variant.role == "ceiling")]
    ]


def of_transfers(variant: Variant) -> list[Values]:
    """Pieces end within a tile, or are no whole vectors where that may be."""
    name = variant.name
    if "_trip_" in name:
        return [{"size": 4096, "count": 7, "streams": n} for n in (1, 3)]
    if "_step_" in name:
        return [{"size": 4096}]
    ways = [("h2d", 48, 1000), ("d2h", 8208, 33), ("h2d", 100_000, 3)]
    if name == "pinned_nvbandwidth":
        ways = [(way, size, 1) for way, size, _ in ways]
    elif name == "pinned_gather" or ("_list_" in name and "bulk" not in name):
        ways += [("d2h", 7, 300), ("h2d", 5001, 9)]
    elif name == "pinned_loop":
        ways += [("d2h", 70_000, 40), ("both", MIB, 1)]
    return [{"direction": way, "size": size, "count": count} for way, size, count in ways]


STEP: dict[str, CaseValue] = {
    "requests": 3,
    "hits": 60,
    "pool_mib": 640,
    "width": 256,
    "schedule": "inline",
}
CASES: dict[str, Sequence[Values]] = {
    "decode_step": [
        *(STEP | {"schedule": one} for one in ("inline", "beside_layer", "beside_products")),
        STEP | {"requests": 1, "hits": 99},
    ],
    "h2d_gather": [
        {"bs": bs, "topk": topk, "draw": draw}
        for bs, topk, draw in ((1, 1, "permutation"), (3, 333, "with_replacement"))
    ],
    # The last pool is more than any GPU holds the translations of, and beyond 2**31 bytes.
    "pool_gather": [
        {"rows": rows, "pool_mib": pool_mib, "layout": layout}
        for layout, rows, pool_mib in (
            *(("scattered", 1, 1), ("scattered", 3000, 4), ("scattered", 70_000, 64)),
            *(("pages_64", 20_000, 64), ("scattered", 20_000, 3072)),
        )
    ],
    "translation": (),
    "transfers": (),
    "unpack": [
        {"chunks": 2, "kib": kib, "fragment": fragment, "src": src, "dst": dst}
        for kib, fragment, src, dst in (
            *((128, 4096, 0, 0), (128, 64, 0, 0), (128, 4093, 0, 1), (128, 333, 5, 2)),
            *((128, 4096, 4, 8), (128, 65536, 8, 0), (1, 1, 0, 0)),
        )
    ],
    "duplex": [{"size": size, "count": count} for size, count in ((48, 1000), (5001, 9))],
    "idle_stream": [{"size": size, "count": count} for size, count in ((48, 1500), (5001, 9))],
}
"""Values of cases; those of two studies depend on the variant."""


def cases_of(study: Study, variant: Variant) -> Sequence[Values]:
    if study.name in ("translation", "transfers"):
        return (of_translation if study.name == "translation" else of_transfers)(variant)
    return CASES[study.name][: 1 if variant.name == "debug_poll_50ms" else None]


def on_gpu(study: Study, variant: Variant, values: Values) -> Operation:
    constants = CONSTANTS.get(study.name, {})
    module = gpu_module(study, variant.name)
    operation: Operation = bound(study, variant, module, values, **constants)
    return operation


@pytest.mark.parametrize(
    ("study", "variant"),
    [
        pytest.param(STUDIES[name], variant, id=f"{name}-{variant.name}")
        for name in CASES
        for variant in STUDIES[name].subjects
        # Other variants of transfers are tested without a GPU, or need PyTorch.
        if "torch" not in variant.needs or name == "decode_step"
        if name != "transfers"
        or variant.path.suffix == ".cu"
        or (variant.name.endswith("_loop") and "managed" not in variant.name)
    ],
)
def test_every_launch_is_right(study: Study, variant: Variant, stream: int) -> None:
    if "torch" in variant.needs:
        pytest.importorskip("torch")
    if reason := unusable(variant):
        pytest.skip(reason)
    for values in cases_of(study, variant):
        try:
            operation = on_gpu(study, variant, values)
        except Skip:  # this host has no such memory
            continue
        for number in range(3):
            if number and operation.reset and study.name == "unpack":
                operation.reset(stream)
            assert outcome(operation, stream) is None, values


def test_rows_outside_and_a_closed_gather_are_refused(stream: int) -> None:
    study = STUDIES["pool_gather"]
    values: Values = {"rows": 4, "pool_mib": 1, "layout": "scattered"}
    operation: Any = on_gpu(study, study.variant("sorted"), values)
    operation._bound.close()
    with pytest.raises(ValueError, match="gather: expected one that is open"):
        operation.launch(stream)
    for pair, message in (
        ((1598, 0), r"source row in \[0, 1598\), got 1598"),
        ((0, 20), r"destination row in \[0, 20\), got 20"),
    ):
        pairs = operation._launches.pairs.get()
        pairs[0, 3] = pair
        operation._launches.pairs.put(pairs)
        with pytest.raises(ValueError, match=rf"pairs\[3\]: expected a {message}"):
            operation.inputs.bind(study.variant("loads_first"), gpu_module(study, "loads_first"))


def test_faults_of_a_decode_step_are_found(stream: int) -> None:
    pytest.importorskip("torch")
    study = STUDIES["decode_step"]
    operation: Any = on_gpu(study, study.variant("few_blocks"), STEP)
    assert outcome(operation, stream) is None
    arrays = operation.inputs.arrays
    slot = int(arrays["out"][2, 0, 7])
    hot = arrays["hot"][2].view(-1, arrays["hot"].shape[3])
    hot[slot, 5] ^= 1
    assert operation.check() == "layer 2, request 0, id 7: expected the bytes of its row"
    hot[slot, 5] ^= 1
    arrays["rows"][2, 1] += 1 << 30  # rows that no step has held
    assert "fetched rows: expected" in operation.check()
    arrays["out"][0, 0, 0] = arrays["out"][0, 0, 1]
    assert "different ones" in operation.check()
    arrays["out"][0, 0, 0] = arrays["rows"].shape[2]
    assert "another's" in operation.check()


def samples_of(study: str, name: str, values: Values, stream: int) -> dict[str, Any]:
    """Samples of metrics that the study takes itself, after a verified launch."""
    operation = on_gpu(STUDIES[study], STUDIES[study].variant(name), values)
    assert outcome(operation, stream) is None
    return dict(operation.own_samples(stream, 2))


def test_what_variants_measure_by_themselves_is_plausible(stream: int) -> None:
    for kind in ("pinned", "pageable"):
        found = samples_of("transfers", f"{kind}_profiled", {"size": 2**24}, stream)
        assert all(0.5 < share < 1.5 for share in found["traced_share"])
    found = samples_of("transfers", "pinned_step_on_device", {"size": 2**24}, stream)
    assert all(share >= 1 for share in found["step_share"])
    found = samples_of("duplex", "neighbours", {"count": 1024, "blocks": 4}, stream)
    assert found.keys() == STUDIES["duplex"].metrics.keys() - {"host_time"}
    assert all(0 < share < 2 for name in found if "_kept_by_" in name for share in found[name])
    assert all(1e-7 < time < 1e-4 for name in found if "latency" in name for time in found[name])
    found = samples_of("idle_stream", "experiments", {"size": 24576, "count": 256}, stream)
    assert all(share == -1 or 0 <= share <= 1 for share in found["old_share"])
    metrics = STUDIES["unpack"].metrics
    found = samples_of("unpack", "s0_everything_per_chunk", {"chunks": 2, "kib": 128}, stream)
    parts = {name for name in found if metrics[name].part_of}
    assert parts == {name for name, one in metrics.items() if one.part_of} - {"batch_time"}
    assert all(0 < value < 1 for name in parts for value in found[name])


BLOCK = 8 * MIB
OF_STREAMS = ["p4_final", "p5_streams", "p5_dropin", "p6_mapped", "p7_ordered"]


@pytest.mark.parametrize("name", [*OF_STREAMS, "p3_block_pool"])
def test_no_stream_reads_memory_that_another_has_overwritten(name: str) -> None:
    """One stream fills blocks, and another copies them, slowly, after they have been freed. The
    phases of the write-up know no streams."""
    study = STUDIES["fragmentation" if name in ("p6_mapped", "p7_ordered") else "phases"]
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
        kind = cudart.cudaMemcpyKind.cudaMemcpyDefault
        cuda(cudart.cudaMemcpyAsync(copy.ctypes.data, block, BLOCK, kind, reader))
        allocator.record_stream(block, reader)
        allocator.free(block)
    synchronize(reader)
    is_right = [bool((copy == tag).all()) for tag, copy in enumerate(copies)]
    assert all(is_right) == (name in OF_STREAMS)


CALLS = [("chunks", {"beside": "thread", "calls": one}) for one in ("copy", "launch", "malloc")]


@pytest.mark.parametrize(("name", "values"), [*((n, {}) for n in PINNING.variant_names), *CALLS])
def test_pinned_memory_is_copied_rightly(name: str, values: Any, stream: int) -> None:
    operation = pinning.bound(name, pinning.case(13, **values), built=gpu_module(PINNING, name))
    assert outcome(operation) is None and operation.own_samples(0, 1)
