"""Transfers on a GPU: right kernels, and memory of the right kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from analysis.measure.cell import Skip
from analysis.study import Case, CaseValue, Study
from analysis.toolchain.modules import load_python
from tests.compiled import gpu_module, study_with_fault
from tests.repository import STUDIES

pytestmark = pytest.mark.gpu

TRANSFERS = STUDIES["transfers"]
KERNELS = [v.name for v in TRANSFERS.variants if v.path.suffix == ".cu"]
KINDS = ("pageable", "pinned", "write_combined", "registered", "registered_huge")


def outcome(study: Study, name: str, case: Case, stream: int) -> str | None:
    """Results of the study's check for two launches, each after poisoning."""
    from analysis.measure.memory import synchronize

    variant = study.variant(name)
    workload = load_python(TRANSFERS, variant.workload).Workload(
        TRANSFERS.constants, np.random.default_rng(0)
    )
    inputs = workload.prepare(case) or workload
    operation = inputs.bind(variant, gpu_module(study, name))
    for _ in range(2):
        operation.poison()
        operation.launch(stream)
        synchronize(stream)
        wrong: str | None = operation.check()
        if wrong:
            return wrong
    return None


def pieces(direction: str, size: int, count: int, **more: int) -> Case:
    values: dict[str, CaseValue] = {"size": size, "count": count, "direction": direction, **more}
    return Case(values, size * count, "default")


def listed(direction: str, size: int, count: int, busy: int = 0) -> Case:
    values: dict[str, CaseValue] = {"host": "scattered", "device": "scattered", "busy": busy}
    return Case({**pieces(direction, size, count).values, **values}, size * count, "default")


def cases_of(name: str) -> list[Case]:
    """Small ones; pieces end within a tile, or are no whole vectors where that may be."""
    if "_list_" in name:
        whole = [listed("h2d", 48, 1000), listed("d2h", 8208, 33), listed("h2d", 100_000, 3, 1)]
        return whole if "bulk" in name else [*whole, listed("d2h", 7, 300), listed("h2d", 5001, 9)]
    if "_trip_" in name:
        return [pieces("round_trip", 4096, 7, streams=n) for n in (1, 3)]
    if "_step_" in name:
        return [pieces("in_place", 4096, 1)]
    ways = [("h2d", 48, 1000), ("d2h", 8208, 33), ("h2d", 100_000, 3), ("d2h", 16, 1)]
    if name == "pinned_nvbandwidth":
        ways = [(way, size, 1) for way, size, _ in ways]
    found = [pieces(*way) for way in ways]
    if name == "pinned_gather":
        found += [pieces("h2d", 7, 300), pieces("d2h", 1, 1), pieces("h2d", 5000, 9)]
    return found


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_is_right(name: str, stream: int) -> None:
    for case in cases_of(name):
        assert outcome(TRANSFERS, name, case, stream) is None, case.id


FAULTS = {
    "pinned_gather": ("pinned_gather.cu", "t < tiles.count;", "t < tiles.count - 1;"),
    "pinned_list_bulk": ("pinned_list_bulk.cu", "list.size - offset)", "list.size - offset - 16)"),
    "pinned_step_on_device": ("pinned_step_on_device.cu", "i < count;", "i < count - 1;"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_check_finds_a_wrong_kernel(name: str, tmp_path: Path, stream: int) -> None:
    wrong = study_with_fault(TRANSFERS, tmp_path, *FAULTS[name])
    assert outcome(wrong, name, cases_of(name)[0], stream) is not None


@pytest.mark.parametrize("kind", KINDS)
def test_memory_is_of_its_kind(kind: str) -> None:
    from kernels.common.host_memory import HostMemory, NoHugePages

    try:
        memory = HostMemory(kind, 4 * 2**20)
    except NoHugePages as reason:
        pytest.skip(str(reason))
    assert memory.is_page_locked() == (kind != "pageable")
    memory.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("direction", ["h2d", "d2h"])
def test_copies_of_every_kind_are_right(kind: str, direction: str, stream: int) -> None:
    for case in (pieces(direction, 1, 1), pieces(direction, 70_000, 40)):
        try:
            assert outcome(TRANSFERS, f"{kind}_loop", case, stream) is None
        except Skip as reason:
            pytest.skip(str(reason))


def test_both_directions_at_once_are_right(stream: int) -> None:
    assert outcome(TRANSFERS, "pinned_loop", pieces("both", 2**20, 1), stream) is None


def own_samples(name: str, case: Case, stream: int) -> Mapping[str, Sequence[float]]:
    variant = TRANSFERS.variant(name)
    workload = load_python(TRANSFERS, variant.workload).Workload(
        TRANSFERS.constants, np.random.default_rng(0)
    )
    inputs = workload.prepare(case) or workload
    operation = inputs.bind(variant, gpu_module(TRANSFERS, name))
    operation.launch(stream)
    samples: Mapping[str, Sequence[float]] = operation.own_samples(stream, 1)
    return samples


@pytest.mark.parametrize("kind", ["pinned", "pageable"])
def test_two_clocks_time_a_copy(kind: str, stream: int) -> None:
    case = pieces("h2d", 2**24, 1)
    samples = own_samples(f"{kind}_profiled", case, stream)
    assert len(samples["gpu_time"]) == len(samples["traced_share"])
    assert all(0.5 < share < 1.5 for share in samples["traced_share"])


def test_a_step_on_the_device_takes_longer_than_by_the_cpu(stream: int) -> None:
    case = pieces("in_place", 2**24, 1)
    samples = own_samples("pinned_step_on_device", case, stream)
    assert all(share >= 1 for share in samples["step_share"])
    assert len(samples["stay_share"]) == len(samples["step_share"])
