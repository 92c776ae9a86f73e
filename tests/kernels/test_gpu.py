"""Only a GPU can show that kernels are right: all variants in small cases, and wrong kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.base.errors import HotpathError
from analysis.measure.cell import Operation, Skip
from analysis.study import Study, Variant
from kernels.common.large_pool import KINDS, LargePool
from tests.compiled import gpu_module, study_with_fault
from tests.conformance.binding import Values, bound, outcome
from tests.repository import STUDIES

pytestmark = pytest.mark.gpu

MIB = 2**20
CONSTANTS = {
    "h2d_gather": {"total_cpu_slots": 4096, "total_gpu_slots": 4096},
    "pool_gather": {"largest_pool_mib": 3072},
    "translation": {"pool_mib": 128, "kinds_mib": 64, "largest_bytes": 2 * MIB},
}


def of_translation(variant: Variant) -> list[Values]:
    if "reads" in variant.cases[0].values:
        walks = [(64, 64, 4096, "random"), (1000, 4, 9999, "ascending"), (7, 2048, 33, "random")]
        found: list[Values] = [
            {"count": count, "stride_kib": stride, "reads": reads, "order": order}
            for count, stride, reads, order in walks
        ]
        is_first = variant.name == "independent_lines"
        return found + [{**found[0], "memory": kind} for kind in KINDS if is_first]
    rows = [(656, 1000, "random"), (4096, 200, "random")]
    if variant.name == "rows":
        rows += [(16, 33, "random"), (1024, 7, "ascending")]
    if variant.role == "ceiling":
        rows = rows[:1]
    return [
        {"row_bytes": size, "rows": count, "order": order, "pool_mib": 1}
        for size, count, order in rows
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
    elif name.endswith("_loop"):
        ways += [("d2h", 70_000, 40), ("both", MIB, 1)] if name == "pinned_loop" else []
    return [{"direction": way, "size": size, "count": count} for way, size, count in ways]


CASES: dict[str, Sequence[Values] | Callable[[Variant], Sequence[Values]]] = {
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
    "translation": of_translation,
    "transfers": of_transfers,
    "unpack": [
        {"chunks": 2, "kib": kib, "fragment": fragment, "src": src, "dst": dst}
        for kib, fragment, src, dst in (
            *((128, 4096, 0, 0), (128, 64, 0, 0), (128, 4093, 0, 1), (128, 333, 5, 2)),
            *((128, 4096, 4, 8), (128, 65536, 8, 0), (1, 1, 0, 0)),
        )
    ],
    "duplex": [
        {"size": size, "count": count} for size, count in ((48, 1000), (5001, 9), (4096, 1024))
    ],
}


def cases_of(study: Study, variant: Variant) -> Sequence[Values]:
    found = CASES[study.name]
    every = found(variant) if callable(found) else found
    return every[:1] if variant.name == "debug_poll_50ms" else every


def is_tested(study: str, variant: Variant) -> bool:
    """Other variants of transfers are tested without a GPU, or need PyTorch."""
    is_loop = variant.name.endswith("_loop") and "managed" not in variant.name
    return study != "transfers" or variant.path.suffix == ".cu" or is_loop


VARIANTS = [
    pytest.param(STUDIES[name], variant, id=f"{name}-{variant.name}")
    for name in CASES
    for variant in STUDIES[name].subjects
    if "torch" not in variant.needs and is_tested(name, variant)
]


def on_gpu(study: Study, variant: Variant, values: Values) -> Operation:
    constants = CONSTANTS.get(study.name, {})
    return bound(study, variant, gpu_module(study, variant.name), values, **constants)


@pytest.mark.parametrize(("study", "variant"), VARIANTS)
def test_every_launch_is_right(study: Study, variant: Variant, stream: int) -> None:
    for values in cases_of(study, variant):
        try:
            operation = on_gpu(study, variant, values)
        except Skip:  # this host has no such memory
            continue
        for number in range(3):
            if number and operation.reset and study.name == "unpack":
                operation.reset(stream)
            assert outcome(operation, stream) is None, values


STORE = "store_vectors<Cached>(dst, held, lane, kWarp, kRowVectors);"
FAULTS = {
    "the last row is missing": (
        *("h2d_gather", "v3_loads_first", "v3_loads_first.cu"),
        *("warp_index() >= gather.rows", "warp_index() >= gather.rows - 1"),
    ),
    "one bit": (
        *("h2d_gather", "v3_loads_first", "v3_loads_first.cu"),
        *(STORE, f"held[0].w ^= warp_index() == 7; {STORE}"),
    ),
    "a row is written elsewhere": (
        *("h2d_gather", "v3_loads_first", "v3_loads_first.cu"),
        *(STORE, STORE.replace("dst", "dst + kRowVectors * gather.rows")),
    ),
    "the last vector of a piece is missing": (
        *("transfers", "pinned_list_bulk", "pinned_list_bulk.cu"),
        *("list.size - offset)", "list.size - offset - 16)"),
    ),
    "the last byte of a fragment is missing": (
        *("unpack", "s4_batched", "kernel.h"),
        *("i < share.len; i += share.team", "i + 1 < share.len; i += share.team"),
    ),
    "a fragment is missing": (
        *("unpack", "s4_batched", "kernel.h"),
        *("if (fragment < batch.count) {", "if (fragment < batch.count - 1) {"),
    ),
    "a read is left out": (
        *("translation", "independent_lines", "independent_lines.cu"),
        *("read < walk.reads)", "read < walk.reads - 1)"),
    ),
    "one bit of a chain": (
        *("translation", "dependent_lines", "dependent_lines.cu"),
        *("[i] = word;", "[i] = word ^ 1;"),
    ),
    "a copy out is too short": (
        *("duplex", "gather_at_once", "copies.h"),
        "pieces.landing, pieces.source, static_cast<size_t>(pieces.bytes())",
        "pieces.landing, pieces.source, static_cast<size_t>(pieces.bytes()) - 1",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_check_finds_a_wrong_kernel(fault: str, tmp_path: Path, stream: int) -> None:
    name, variant, *change = FAULTS[fault]
    wrong = study_with_fault(STUDIES[name], tmp_path, *change)
    values = {"fragment": 4093} if name == "unpack" else cases_of(wrong, wrong.variant(variant))[1]
    assert outcome(on_gpu(wrong, wrong.variant(variant), values), stream) is not None


def test_an_aliased_pool_is_read_beyond_its_first_address() -> None:
    from analysis.measure.memory import cuda, cudart

    pool = LargePool(2**30 + 3 * MIB, np.random.default_rng(0), "aliased")
    landed = np.empty(3 * MIB, np.uint8)
    kind = cudart.cudaMemcpyKind.cudaMemcpyDefault
    cuda(cudart.cudaMemcpy(landed.ctypes.data, pool.pointer + 2**30, landed.size, kind))
    assert np.array_equal(landed, pool.bytes[: landed.size])
    pool.close()


def test_no_room_on_the_gpu_is_said() -> None:
    from analysis.measure.memory import DeviceArray

    with pytest.raises(HotpathError, match="dst: needs 1000000000000000 B of GPU memory"):
        DeviceArray((10**15,), np.uint8, "dst")


@pytest.mark.parametrize("kind", ["pageable", "pinned", "write_combined", "registered"])
def test_memory_is_of_its_kind(kind: str) -> None:
    from kernels.common.host_memory import HostMemory

    memory = HostMemory(kind, 4 * MIB)
    assert memory.is_page_locked() == (kind != "pageable")
    memory.close()


PAIRS = [
    ((1598, 0), r"pairs\[3\]: expected a source row in \[0, 1598\), got 1598"),
    ((-1, 0), r"pairs\[3\]: expected a source row"),
    ((0, 20), r"pairs\[3\]: expected a destination row in \[0, 20\), got 20"),
]


@pytest.mark.parametrize(("pair", "message"), PAIRS)
def test_rows_outside_are_refused(pair: tuple[int, int], message: str) -> None:
    study = STUDIES["pool_gather"]
    values: Values = {"rows": 4, "pool_mib": 1, "layout": "scattered"}
    operation: Any = on_gpu(study, study.variant("loads_first"), values)
    pairs = operation._launches.pairs.get()
    pairs[0, 3] = pair
    operation._launches.pairs.put(pairs)
    with pytest.raises(ValueError, match=message):
        operation.inputs.bind(study.variant("loads_first"), gpu_module(study, "loads_first"))


def test_a_closed_gather_and_a_set_that_is_not_there_are_refused(stream: int) -> None:
    study = STUDIES["pool_gather"]
    values: Values = {"rows": 4, "pool_mib": 1, "layout": "scattered"}
    operation: Any = on_gpu(study, study.variant("sorted"), values)
    with pytest.raises(ValueError, match="set: expected below"):
        operation._bound.flush(2**20)
    operation._bound.close()
    with pytest.raises(ValueError, match="gather: expected one that is open"):
        operation.launch(stream)


def samples_of(study: str, name: str, values: Values, stream: int) -> dict[str, Any]:
    """Samples of metrics that the study takes itself, after a verified launch."""
    operation = on_gpu(STUDIES[study], STUDIES[study].variant(name), values)
    assert outcome(operation, stream) is None
    return dict(operation.own_samples(stream, 2))


def test_what_variants_measure_by_themselves_is_plausible(stream: int) -> None:
    for kind in ("pinned", "pageable"):
        found = samples_of("transfers", f"{kind}_profiled", {"size": 2**24}, stream)
        assert len(found["gpu_time"]) == len(found["traced_share"])
        assert all(0.5 < share < 1.5 for share in found["traced_share"])
    found = samples_of("transfers", "pinned_step_on_device", {"size": 2**24}, stream)
    assert len(found["stay_share"]) == len(found["step_share"])
    assert all(share >= 1 for share in found["step_share"])
    duplex = STUDIES["duplex"]
    found = samples_of("duplex", "neighbours", {"count": 1024, "blocks": 4}, stream)
    assert found.keys() == duplex.metrics.keys() - {"host_time"}
    assert all(0 < share < 2 for name in found if "_kept_by_" in name for share in found[name])
    assert all(1e-7 < time < 1e-4 for name in found if "latency" in name for time in found[name])
    unpack = STUDIES["unpack"]
    found = samples_of("unpack", "s0_everything_per_chunk", {"chunks": 2, "kib": 128}, stream)
    parts = {name for name in found if unpack.metrics[name].part_of}
    assert parts == {n for n, m in unpack.metrics.items() if m.part_of} - {"batch_time"}
    assert all(0 < value < 1 for name in parts for value in found[name])
