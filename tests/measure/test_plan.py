"""Plans: where a study is measured, needs that are met there, and variants that are pending."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pynvml
import pytest

from analysis import BUILD
from analysis.base.errors import FieldError, HotpathError
from analysis.base.gpu import Gpu, open_gpus
from analysis.measure import plan as module
from analysis.measure.__main__ import other_users
from analysis.measure.plan import Place, find_places, lacks_captures, pending, plan_pending
from analysis.study import CAPTURE_KINDS, Study, config, load_study
from analysis.study.config import load_config
from tests.compiled import toolchain
from tests.editing import replace_in
from tests.measure.studies import GPU, GRID, plan_of, run, write_study
from tests.nvml import Device, devices, fail, install
from tests.repository import STUDIES
from tests.synthetic import COPY, set_capture, write_machine

ALONE, PEERS = STUDIES["h2d_gather"], STUDIES["peers"]
RUNNING = "nvmlDeviceGetComputeRunningProcesses"


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler and the studies, found once."""
    monkeypatch.setattr(module, "find_toolchain", lambda nvcc: toolchain())
    monkeypatch.setattr(config, "discover", lambda: {**STUDIES})
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


MIXED = [Device(0), Device(1, users=[5]), Device(2, name="NVIDIA L4"), Device(3)]


@pytest.mark.parametrize(
    ("found", "settings", "expected"),
    [
        (devices(1), {}, ("nvidia-h200", [0])),
        (devices(8), {}, ("nvidia-h200-x4", [0, 1, 2, 3])),
        (MIXED, {}, ("nvidia-h200-x2", [0, 3])),
        ([Device(0), Device(1, is_divided=True)], {}, ("nvidia-h200", [0])),
        (devices(4), {"gpu": [2, 3]}, ("nvidia-h200-x2", [2, 3])),
        (devices(4), {"gpu": "GPU-2", "machine": "my-box"}, ("my-box-x4", [2, 0, 1, 3])),
        (devices(4), {"gpu": [0, 1], "machine": "my-box"}, ("my-box", [0, 1])),
    ],
)
def test_the_study_of_several_gpus_uses_those_named_or_free_ones_of_the_kind_of_the_first(
    monkeypatch: pytest.MonkeyPatch, found: list[Device], settings: dict[str, Any], expected: object
) -> None:
    """Hidden and lost ones are left out, and silent ones taken."""

    def used(study: Study = PEERS) -> tuple[str, list[int | str]]:
        asked = load_config(settings)
        with open_gpus(asked.gpus) as gpus:
            place = find_places(asked, gpus)[study.name]
        return place.machine, [gpu.index for gpu in place.in_use(study.variants)]

    install(monkeypatch, found)
    machine, indices = used()
    assert (machine, indices) == expected
    assert used(ALONE)[1] == indices[:1]
    if len(found) == 8:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,GPU-2, 3")
        assert used()[1] == [0, 2, 3]
        fail(monkeypatch, RUNNING, pynvml.NVML_ERROR_GPU_IS_LOST, found[2])
        fail(monkeypatch, RUNNING, pynvml.NVML_ERROR_NOT_SUPPORTED, found[3])
        assert used()[1] == [0, 3]


def test_a_machine_without_a_gpu_and_a_trial_have_other_folders(build_folder: Path) -> None:
    results = load_config({}).results
    for settings, root, machine in (
        ({}, build_folder / "unnamed", "unnamed"),
        ({"machine": "box"}, results, "box"),
        ({"grid": "smoke"}, BUILD / "smoke" / "results", "unnamed"),
    ):
        place = find_places(load_config(settings), ())["peers"]
        assert (place.root, place.machine) == (root, machine)


TWO = ("gpu", "gpus>=2")
NEEDS: list[tuple[tuple[object, ...], list[str], dict[str, Any], str | None]] = [
    (("gpu",), ["sm_90"], {}, None),
    (("gpu",), [], {}, "no GPU"),
    (("sm_90a",), ["sm_100"], {}, None),
    (("sm_90",), ["sm_89"], {}, "needs sm_90, the GPU is sm_89"),
    (("cuda>=12.8",), [], {"cuda": "12.10"}, None),
    (("cuda>=12.10",), [], {"cuda": "12.9"}, "needs CUDA 12.10, modules are built with 12.9"),
    (("managed",), [], {}, "managed memory is opt-in: managed=true"),
    (("torch",), [], {}, "torch is not installed"),
    (TWO, ["sm_90"], {}, "needs 2 free GPUs of one kind, got 1; gpu=[0, 1] would name them"),
    (TWO, ["sm_90"] * 2, {}, None),
    (
        *(TWO, ["sm_90"] * 2, {"apart": ((0, 1),)}),
        "GPU 4 and GPU 5 cannot access each other's memory",
    ),
    (TWO, ["sm_90"] * 3, {"apart": ((0, 2), (1, 2))}, None),  # the third is not used
]
"""Needs of a variant, the GPUs of a place, its other settings, and the reason why it cannot run."""


def test_need_is_met_or_has_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # as if it were not installed
    for number, (needs, arches, settings, reason) in enumerate(NEEDS):
        study = write_study(tmp_path / f"s{number}", {"name": "one", "needs": list(needs)})
        gpus = [Gpu(None, "", f"GPU-{n}", 4 + n, arch, "") for n, arch in enumerate(arches)]
        place = Place(Path(), "box", gpus=gpus, **settings)
        assert place.unmet(study.variants[0]) == reason
        assert place.in_use(study.variants) == tuple(gpus[: 2 if needs == TWO else 1])
    for need in ("cuda", "cuda>=13", "rocm", "", "gpu ", 7, None, "gpus>=1"):
        with pytest.raises(FieldError, match=r"needs\.0: expected gpu, sm_<NN>, cuda>=<X\.Y>, "):
            write_study(tmp_path / "unknown", {"name": "one", "needs": [need]})


def test_pending_is_decided_by_code_cases_and_grid(tmp_path: Path, place: Place) -> None:
    folder = tmp_path / "fresh"
    study = write_study(folder, {"name": "one"}, {"name": "two", "after": "one"})

    def names(grid: str = "default", runs: int = 1, where: Place = place) -> list[str]:
        study = load_study(folder / "study.yaml")
        return [variant.name for variant in pending(study, where, grid, runs)]

    assert names() == ["one", "two"]
    run(plan_of(study, place, rounds=1, samples=1))
    assert names() == []
    assert names("full") == names(where=replace(place, machine="other-box")) == ["one", "two"]
    for file, old, new, expected in (
        ("two.py", '"""Fill at once."""', '"""Fill all."""\n# at once', []),
        ("two.py", "def fill(out)", "def fill(out, *_)", ["two"]),
        ("workload.py", "0xA5", "0xA6", ["one", "two"]),
        ("study.yaml", "- 2\n", "- 2\n    - 3\n", ["one", "two"]),
    ):
        replace_in(folder / file, old, new)
        assert names() == expected, new
        replace_in(folder / file, new, old)
    assert names(runs=2) == ["one", "two"]
    run(plan_of(study, replace(place, host="12345678"), rounds=1))
    assert plan_pending(study, GRID, place, runs=2) is None
    plan = plan_pending(study, GRID, place, runs=3)
    assert plan is not None and plan.asked == ()


def test_a_skipped_variant_is_pending_once_its_need_is_met(tmp_path: Path, place: Place) -> None:
    """One without a case in the grid is left alone."""
    full = {"n": [9], "payload_bytes": 9, "grid": "full"}
    needy = {"name": "one", "needs": ["managed"]}
    study = write_study(tmp_path / "needy", needy, {"name": "two", "cases": ["full"]}, full=full)
    one, _ = study.variants
    assert pending(study, place, "default") == [one]
    run(plan_of(study, place, rounds=1))
    assert pending(study, place, "default") == pending(study, place, "default", runs=2) == []
    assert pending(study, replace(place, managed=True), "default") == [one]


def test_pending_variants_are_measured_with_their_baselines(tmp_path: Path, place: Place) -> None:
    after = ({"name": "two", "after": "one"}, {"name": "three", "after": "two"})
    limit = {"name": "limit", "role": "ceiling"}
    study = write_study(tmp_path / "beside", {"name": "one"}, *after, limit)
    run(plan_of(study, place, rounds=1, samples=1))
    replace_in(study.folder / "three.py", "out[:]", "out[0:]")
    for plan in (plan_pending(study, GRID, place, again=name) for name in ("three", "")):
        assert plan and [variant.name for variant in plan.variants] == ["two", "three", "limit"]
        assert plan.asked == ("three",)
    one, two, three, ceiling = study.variants
    needy = replace(study, variants=(one, two, replace(three, needs=("managed",)), ceiling))
    alone = plan_pending(needy, GRID, place)
    assert alone and alone.asked == ("three",) and len(alone.variants) == 1


def test_what_can_be_profiled_lacks_a_capture_until_it_has_one_of_its_code(tmp_path: Path) -> None:
    place = Place(tmp_path, "box", gpus=[GPU], cuda="13.0")
    write_machine(tmp_path, "box", COPY)
    captured: dict[str, dict[str, Any]] = {variant.name: {} for variant in COPY.variants}

    def lacks(grid: str = "default", at: Place = place) -> bool:
        return lacks_captures(COPY, at, grid, CAPTURE_KINDS)

    assert lacks() and not lacks("smoke") and not lacks(at=replace(place, gpus=()))
    for kind in CAPTURE_KINDS:
        set_capture(tmp_path, "box", COPY, kind, captured, [])
    assert not lacks()
    captured[COPY.with_role("step")[0].name] = {"source_sha256": "0" * 64}
    for path in (tmp_path / "box" / "copy").glob("*.counters.json"):
        path.unlink()
    set_capture(tmp_path, "box", COPY, "counters", captured, [])
    assert lacks()


def test_gpu_in_use_is_refused_or_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, [Device(3, users=[42, 41]), Device(4)])
    with open_gpus([4, 3]) as gpus:
        with pytest.raises(HotpathError, match=r"GPU 3 is used by processes \[41, 42\]"):
            other_users(gpus, "refuse")
        assert (other_users(gpus, "record"), other_users(gpus[:1], "refuse")) == ([41, 42], [])
