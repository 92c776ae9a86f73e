"""Gathers on a GPU: right kernels, and checks that find wrong ones."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.base.errors import HotpathError
from analysis.base.gpu import open_gpus
from analysis.measure.journal import Journal, RoundRecord, digest_of
from analysis.measure.places import Place
from analysis.measure.plan import Plan
from analysis.measure.run import Host, run_rounds
from analysis.results.store.keys import Look, Stages
from analysis.results.store.samples import write_rows
from analysis.study import Case, Study
from analysis.study.config import Grid
from analysis.toolchain.compilers import find_toolchain
from analysis.toolchain.modules import load_python
from tests.compiled import gpu_module, gpu_module_file, study_with_fault
from tests.repository import STUDIES
from tests.synthetic import RUN

pytestmark = pytest.mark.gpu

SLOTS = 4096
VARIANTS = [v.name for v in STUDIES["h2d_gather"].variants if "torch" not in v.needs]


def case(bs: int = 3, topk: int = 333, draw: str = "permutation") -> Case:
    return Case({"bs": bs, "topk": topk, "draw": draw}, bs * topk * 656, "default")


@pytest.fixture(scope="module")
def study() -> Study:
    return STUDIES["h2d_gather"]


def outcome(study: Study, name: str, stream: int, at: Case, seed: int = 0) -> str | None:
    """Result of the study's check of one launch."""
    from analysis.measure.memory import synchronize

    variant = study.variant(name)
    few = {"total_cpu_slots": SLOTS, "total_gpu_slots": SLOTS}
    constants = {**variant.constants, **few}
    workload = load_python(study, "workload").Workload(constants, np.random.default_rng(seed))
    workload.prepare(at)
    operation = workload.bind(variant, gpu_module(study, name))
    operation.poison()
    operation.launch(stream)
    synchronize(stream)
    wrong: str | None = operation.check()
    return wrong


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("at", [case(1, 1), case(), case(draw="with_replacement"), case(4, 1024)])
def test_variant_is_right(study: Study, name: str, stream: int, at: Case) -> None:
    assert outcome(study, name, stream, at) is None


STORE = "store_vectors<Cached>(dst, held, lane, kWarp, kRowVectors);"
"""Statement of v3_loads_first that the faults change."""


def broken(study: Study, folder: Path, old: str, new: str) -> Study:
    """The study with one thing wrong in v3_loads_first."""
    return study_with_fault(study, folder, "v3_loads_first.cu", old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("warp_index() >= gather.rows", "warp_index() >= gather.rows - 1"),
        (STORE, STORE.replace("kRowVectors", "kRowVectors - 1")),
        (STORE, STORE.replace("dst", "dst + kRowVectors * gather.rows")),
        (STORE, f"held[0].w ^= warp_index() == 7; {STORE}"),
    ],
    ids=["last row missing", "last vector missing", "outside the rows", "one bit"],
)
def test_check_finds_a_wrong_kernel(
    study: Study, tmp_path: Path, stream: int, old: str, new: str
) -> None:
    wrong = broken(study, tmp_path, old, new)
    assert outcome(wrong, "v3_loads_first", stream, case()) is not None


def bind(study: Study, **changes: Any) -> Any:
    from analysis.measure.memory import DeviceArray
    from kernels.common.arrays import pinned

    def on_gpu(values: np.ndarray) -> DeviceArray:
        array = DeviceArray(values.shape, values.dtype, "test")
        array.put(values)
        return array

    arguments: dict[str, Any] = {
        "src": pinned((4, 656), np.uint8),
        "dst": on_gpu(np.zeros((4, 656), np.uint8)),
        "pairs": on_gpu(np.zeros((1, 2, 2), np.int32)),
    }
    for name, value in changes.items():
        arguments[name] = on_gpu(value) if name == "pairs" else value
    return gpu_module(study, "v3_loads_first").bind(**arguments)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"src": np.zeros((4, 656), np.uint8)}, "src: expected pinned host memory"),
        ({"pairs": np.array([[[0, 0], [4, 0]]], np.int32)}, r"pairs\[1\]: expected a source row"),
        ({"pairs": np.array([[[0, -1], [0, 0]]], np.int32)}, r"pairs\[0\]: expected a destination"),
    ],
)
def test_bad_arguments_are_refused(study: Study, changes: dict[str, Any], message: str) -> None:
    bind(study)
    with pytest.raises(ValueError, match=message):
        bind(study, **changes)


def test_no_room_on_the_gpu_is_said() -> None:
    from analysis.measure.memory import DeviceArray

    with pytest.raises(HotpathError, match="dst: needs 1000000000000000 B of GPU memory"):
        DeviceArray((10**15,), np.uint8, "dst")


def test_kernel_that_fails_in_the_middle_keeps_finished_rounds(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = "const int lane = lane_index();"
    wrong = broken(study, tmp_path, trap, trap + " if (gather.rows == 512) __trap();")
    names = ["v2_warp_per_token", "v3_loads_first"]
    modules = tmp_path / "modules"
    (modules / wrong.name).mkdir(parents=True)
    for name in names:
        shutil.copy(gpu_module_file(wrong, name), modules / wrong.name)
    monkeypatch.setattr("analysis.measure.plan.BUILD", tmp_path / "build")
    grid = Grid(name="smoke", rounds=2, samples=1, sample_budget_s=0.05)
    with open_gpus([0]) as gpus:
        variants = tuple(wrong.variant(name) for name in names)
        place = Place(tmp_path / "results", "box", gpus=gpus, cuda="13.0")
        journal = Journal(Plan(wrong, variants, grid, place))
        write_rows(journal.round_file(0), [])
        look = Look(spin_s=1.0, copy_bytes_per_s=1.0)
        record = RoundRecord(
            visits=[],
            stages_s=Stages(start=0.0, prepare=0.0, check=0.0, timing=0.0, recorded=0.0),
            round=0,
            start=RUN,
            end=RUN,
            seconds=1.0,
            energy_j=None,
            before=look,
            after=look,
            newcomers=[],
            samples_sha256=digest_of(journal.round_file(0)),
        )
        journal.finish(record)
        host = Host(find_toolchain(), gpus[0].arch, modules, round_limit_s=60)
        with pytest.raises(
            HotpathError, match=r"round 2: .*: v3_loads_first bs=1,.*rounds kept: 1"
        ):
            run_rounds(journal, host)
    assert not journal.round_file(1).exists()
