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
        walks: list[Values] = [
            {"count": count, "stride_kib": stride, "reads": reads, "order": order}
            for count, stride, reads, order in (
                (64, 64, 4096, "random"),
                (1000, 4, 9999, "ascending"),
                (7, 2048, 33, "random"),
            )
        ]
        is_first = variant.name == "independent_lines"
        return walks + [{**walks[0], "memory": kind} for kind in KINDS if is_first]
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
    "duplex": [{"size": 48, "count": 1000}, {"size": 5001, "count": 9}],
    "idle_stream": [
        {"size": size, "count": count, "host": "scattered", "device": "scattered"}
        for size, count in ((48, 1500), (5001, 9), (24576, 64))
    ],
}


def cases_of(study: Study, variant: Variant) -> Sequence[Values]:
    found = CASES[study.name]
    every = found(variant) if callable(found) else found
    return every[:1] if variant.name == "debug_poll_50ms" else every


VARIANTS = [
    pytest.param(STUDIES[name], variant, id=f"{name}-{variant.name}")
    for name in CASES
    for variant in STUDIES[name].subjects
    # Other variants of transfers are tested without a GPU, or need PyTorch.
    if "torch" not in variant.needs
    if name != "transfers"
    or variant.path.suffix == ".cu"
    or (variant.name.endswith("_loop") and "managed" not in variant.name)
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
FAULTS = [
    *(
        ("h2d_gather", "v3_loads_first", "v3_loads_first.cu", *change)
        for change in (
            ("warp_index() >= gather.rows", "warp_index() >= gather.rows - 1"),
            (STORE, f"held[0].w ^= warp_index() == 7; {STORE}"),
            (STORE, STORE.replace("dst", "dst + kRowVectors * gather.rows")),
        )
    ),
    *(
        ("unpack", "s4_batched", "kernel.h", *change)
        for change in (
            ("i < share.len; i += share.team", "i + 1 < share.len; i += share.team"),
            ("if (fragment < batch.count) {", "if (fragment < batch.count - 1) {"),
        )
    ),
    (
        *("transfers", "pinned_list_bulk", "pinned_list_bulk.cu"),
        *("list.size - offset)", "list.size - offset - 16)"),
    ),
    (
        *("translation", "dependent_lines", "dependent_lines.cu"),
        *("[i] = word;", "[i] = word ^ 1;"),
    ),
]
"""Study, variant, file, a text that it has, and a wrong one."""


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault[1]}-{fault[-1][:20]}")
def test_the_check_finds_a_wrong_kernel(
    fault: tuple[str, ...], tmp_path: Path, stream: int
) -> None:
    name, variant, *change = fault
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


def test_rows_outside_and_a_closed_gather_are_refused(stream: int) -> None:
    study = STUDIES["pool_gather"]
    values: Values = {"rows": 4, "pool_mib": 1, "layout": "scattered"}
    operation: Any = on_gpu(study, study.variant("sorted"), values)
    with pytest.raises(ValueError, match="set: expected below"):
        operation._bound.flush(2**20)
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
    assert all(bound % 16 == 0 for bound in found["bound_bytes"])
    assert all(share == -1 or 0 <= share <= 1 for share in found["old_share"])
    metrics = STUDIES["unpack"].metrics.values()
    found = samples_of("unpack", "s0_everything_per_chunk", {"chunks": 2, "kib": 128}, stream)
    parts = {name for name in found if STUDIES["unpack"].metrics[name].part_of}
    assert parts == {one.name for one in metrics if one.part_of} - {"batch_time"}
    assert all(0 < value < 1 for name in parts for value in found[name])
