"""The unpack study on a GPU: every variant, random descriptors, and faults that must be found."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from analysis.study import Case, Study
from analysis.toolchain.modules import load_python
from tests.compiled import gpu_module, study_with_fault
from tests.repository import STUDIES

pytestmark = pytest.mark.gpu

UNPACK = STUDIES["unpack"]
WORKLOADS = load_python(UNPACK, "workload")
SCATTERING = [variant.name for variant in UNPACK.variants if variant.role != "ceiling"]
SLOW = ("debug_poll_50ms",)


def unpack_case(**changes: int | str) -> Case:
    values: dict[str, int | str] = {"chunks": 2, "kib": 128, "fragment": 4096, "src": 0, "dst": 0}
    return Case(values | changes, 0, "default")


CASES = [
    unpack_case(),
    unpack_case(fragment=64),  # more descriptors than a block holds
    unpack_case(fragment=4093, dst=1),
    unpack_case(fragment=333, src=5, dst=2),
    unpack_case(src=1),
    unpack_case(src=4, dst=8),
    unpack_case(src=8),
    unpack_case(chunks=1, kib=1, fragment=1),
    unpack_case(fragment=65536),
]


def new_workload(name: str = "s4_batched") -> Any:
    return WORKLOADS.Workload(UNPACK.variant(name).constants, np.random.default_rng(0))


def outcomes(study: Study, name: str, stream: int, workload: Any, times: int = 2) -> list[Any]:
    """Results of the study's check after each launch; later launches are prepared first."""
    from analysis.measure.memory import synchronize

    operation = workload.bind(study.variant(name), gpu_module(study, name))
    results = []
    for number in range(times):
        operation.poison()
        if number and operation.reset:
            operation.reset(stream)
        operation.launch(stream)
        synchronize(stream)
        results.append(operation.check())
    return results


@pytest.mark.parametrize("name", UNPACK.variant_names)
def test_variant_is_correct(name: str, stream: int) -> None:
    workload = new_workload(name)
    for at in CASES[:1] if name in SLOW else CASES:
        workload.prepare(at)
        assert outcomes(UNPACK, name, stream, workload) == [None, None], at.id


def random_chunks(rng: np.random.Generator) -> list[np.ndarray]:
    """Three chunks of fragments of any length and alignment, with gaps, in any order."""
    count = int(rng.integers(3, 3000))
    lengths = rng.integers(1, rng.choice([16, 300, 9000]), count)
    every = np.zeros(count, WORKLOADS.DESCRIPTOR)
    every["len"] = lengths
    every["src_off"] = rng.integers(0, 1 << 20, count)
    gaps = rng.integers(0, 20, count)
    every["dst_off"] = WORKLOADS.GUARD + np.cumsum(lengths + gaps) - lengths
    return [part for part in np.array_split(rng.permutation(every), 3) if len(part)]


@pytest.mark.parametrize("name", [name for name in SCATTERING if name not in SLOW])
def test_random_descriptors_land_and_nothing_else_changes(name: str, stream: int) -> None:
    rng = np.random.default_rng(len(name))
    workload = new_workload()
    for _ in range(4):
        workload.prepare_chunks(random_chunks(rng))
        assert outcomes(UNPACK, name, stream, workload, times=1) == [None]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if (fragment < batch.count) {", "if (fragment < batch.count - 1) {"),
        ("i < share.len; i += share.team", "i + 1 < share.len; i += share.team"),
        ("(dst, loaded, first,", "(dst + words, loaded, first,"),
        ("share.dst[i] = share.src[i];", "share.dst[i] = share.src[i] ^ (i == share.len - 1);"),
    ],
    ids=["last fragment missing", "last byte missing", "past the fragment", "one bit"],
)
def test_check_finds_a_wrong_kernel(tmp_path: Path, stream: int, old: str, new: str) -> None:
    wrong = study_with_fault(UNPACK, tmp_path, "kernel.h", old, new)
    workload = new_workload()
    workload.prepare(unpack_case(fragment=4093, chunks=1))
    (result,) = outcomes(wrong, "s4_batched", stream, workload, times=1)
    assert result is not None


def bind_unchecked(module: ModuleType, plan: Any) -> Any:
    """Binds a plan as the workload does, but without validating the descriptors."""
    from analysis.measure.memory import DeviceArray

    bounce = DeviceArray((plan.bounce_bytes,), np.uint8, "bounce")
    dst = DeviceArray((plan.dst_bytes,), np.uint8, "dst")
    blocks = plan.blocks.view(np.uint8).reshape(-1)
    ends = bounce.pointer, bounce.nbytes, dst.pointer, dst.nbytes
    return bounce, dst, module.bind(blocks, plan.blocks_of_chunks, *ends)


@pytest.mark.parametrize(
    ("index", "changes", "message"),
    [
        (5, {"len": 0}, "descriptor 5: no bytes"),
        (77, {"src_off": 2**32 - 1}, "descriptor 77: beyond the bounce buffer"),
        (3, {"dst_off": 2**64 - 8}, "descriptor 3: beyond the destination"),
        (127, {"dst_off": WORKLOADS.GUARD + 1}, "descriptor 127: overlaps another"),
    ],
)
def test_the_checked_mode_finds_faults_on_the_device(
    stream: int, index: int, changes: dict[str, int], message: str
) -> None:
    drawn = WORKLOADS.draw_chunks(unpack_case(chunks=2, kib=256), np.random.default_rng(0))
    plan = WORKLOADS.plan(drawn, UNPACK.constants["block_descriptors"])
    *kept, good = bind_unchecked(gpu_module(UNPACK, "checked"), plan)
    good.launch(stream)
    block, position = divmod(index, 64)
    for field, value in changes.items():
        plan.blocks[block]["descriptors"][position][field] = value
    *kept, bad = bind_unchecked(gpu_module(UNPACK, "checked"), plan)
    with pytest.raises(RuntimeError, match=message):
        bad.launch(stream)
    del kept


def test_the_checked_mode_finds_bytes_that_do_not_add_up(stream: int) -> None:
    drawn = WORKLOADS.draw_chunks(unpack_case(chunks=1, kib=8), np.random.default_rng(0))
    plan = WORKLOADS.plan(drawn, UNPACK.constants["block_descriptors"])
    plan.blocks[0]["bytes"] += 1
    *kept, bad = bind_unchecked(gpu_module(UNPACK, "checked"), plan)
    with pytest.raises(RuntimeError, match="bytes: expected the sum of all lengths, 8192, got 819"):
        bad.launch(stream)
    del kept


def test_a_step_reports_the_parts_of_its_call(stream: int) -> None:
    workload = new_workload()
    workload.prepare(CASES[0])
    name = "s0_everything_per_chunk"
    operation = workload.bind(UNPACK.variant(name), gpu_module(UNPACK, name))
    samples = operation.own_samples(stream, 2)
    assert set(samples) <= set(UNPACK.metrics)
    parts = {metric for metric in samples if UNPACK.metrics[metric].part_of}
    assert parts == {m.name for m in UNPACK.metrics.values() if m.part_of} - {"batch_time"}
    assert all(0 < value < 1 for metric in parts for value in samples[metric])
