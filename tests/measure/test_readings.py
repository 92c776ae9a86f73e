"""GPUs that do not answer every query of NVML, as under WSL, on consumer cards and vGPUs."""

import csv
import threading
from collections import Counter
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pynvml
import pytest

from analysis.base.gpu import UNKNOWN_NAME, Gpu, GpuError, NoGpu, open_gpus, show_only
from analysis.base.records import columns
from analysis.measure import nvbench, telemetry
from analysis.measure.__main__ import other_users
from analysis.measure.cell import Cell
from analysis.measure.machine import describe, nvlinks, peer_access
from analysis.measure.plan import Place
from analysis.measure.round import Visit
from analysis.measure.telemetry import Answers, readings_of
from analysis.results.store.records import Reading
from tests.measure.studies import FILL, GPU, only_run, plan_of, run, write_study
from tests.nvml import QUERIES, Device, devices, fail, install

LOST = (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED)
REFUSED = (
    *(pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_UNKNOWN),
    *(pynvml.NVML_ERROR_NO_PERMISSION, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND),
)
OPENING = (
    *("nvmlDeviceGetHandleByIndex", "nvmlDeviceGetHandleByUUID", "nvmlInit"),
    *("nvmlDeviceGetCount", "nvmlDeviceGetCudaComputeCapability"),
)
"""Queries without which there is no GPU to measure."""
KNOWN = "nvmlDeviceGetUUID"
"""A query that every driver answers."""


def recorded(gpus: tuple[Gpu, ...], turns: int = 99) -> list[Answers]:
    """Telemetry of these turns, or until a GPU is lost."""
    answers: list[Answers] = []
    telemetry.record(gpus, answers, Mock(wait=Mock(side_effect=[False] * turns + [True])))
    return answers


def test_a_query_without_an_answer_costs_its_columns_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.setenv(name, "")
    install(monkeypatch, devices(2))
    with open_gpus([0, 1]) as gpus:
        known = describe(gpus).unsupported
    lacking: dict[str, list[str]] = {}
    for query in (query for query in QUERIES if query not in OPENING):
        for code in (*REFUSED, None):  # or a value that means that none is available
            with monkeypatch.context() as patch:
                if code is not None:
                    fail(patch, query, code)
                elif "Clock" in query or "Power" in query:
                    patch.setattr(pynvml, query, lambda *_: 2**32 - 1)
                else:
                    continue
                with open_gpus([0, 1]) as gpus:
                    assert [gpu.arch for gpu in gpus] == ["sm_90", "sm_90"]
                    new = sorted({*describe(gpus).unsupported} - {*known})
                    assert lacking.setdefault(query, new) == new
                    assert other_users(gpus, "refuse") == []
                    (answers,) = recorded(gpus[:1], turns=1)
                    show_only(gpus)
            assert {name for name, value in answers.items() if value is None} <= {*new}
    assert max(Counter(chain(*lacking.values())).values()) == 1
    assert lacking["nvmlDeviceGetPowerUsage"] == ["power_w"]
    assert len([*chain(*lacking.values())]) == 20


def test_a_lost_gpu_is_named_in_the_words_of_nvml(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that cannot be opened is not a missing one."""
    known = [query for query in QUERIES if "DeviceGet" in query and query not in OPENING]
    of_gpu = [query for query in known if "NvLink" not in query]
    for query in (*of_gpu, "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetCount", "nvmlInit"):
        refused = [] if query in of_gpu else [pynvml.NVML_ERROR_NO_PERMISSION]
        for code in (*LOST, *refused):
            with monkeypatch.context() as patch:
                install(patch, devices(1))
                fail(patch, query, code)
                said = "GPU 0 no longer answers" if query in of_gpu else "GPU( 0)?"
                expected = f"^{said}: {pynvml.NVMLError(code)}$"
                with pytest.raises(GpuError, match=expected) as caught, open_gpus([0]) as gpus:
                    describe(gpus)
                assert not isinstance(caught.value, NoGpu)


@pytest.mark.parametrize("is_silent", [False, True])
def test_a_study_is_measured_and_published_whatever_a_gpu_does_not_report(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: Place, is_silent: bool
) -> None:
    install(monkeypatch, devices(1))
    silent = [query for query in QUERIES if is_silent and query not in (*OPENING, KNOWN)]
    for query in silent:
        fail(monkeypatch, query, pynvml.NVML_ERROR_NOT_SUPPORTED)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    def without_nvbench(cells: list[Cell], measure: Callable[[Cell], None], *_: object) -> None:
        for cell in cells:
            measure(cell)

    monkeypatch.setattr(nvbench, "run_under_nvbench", without_nvbench)
    monkeypatch.setattr(telemetry, "PERIOD_S", 0.001)
    study = write_study(tmp_path / "silent", {"name": "one"})
    slow = FILL + "    import time\n    time.sleep(0.01)\n"
    (study.folder / "one.py").write_text(slow)
    with open_gpus([0]) as gpus:
        assert gpus[0].name == (UNKNOWN_NAME if is_silent else "NVIDIA H200")
        run(plan_of(study, Place(place.root, place.machine, gpus=gpus)))
    measured = only_run(place, study)
    assert measured.about.telemetry == {"one": "captured"}
    assert {row.status for row in measured.rows} == {"ok"}
    assert all((row.sm_mhz is None) == is_silent for row in measured.rows)
    assert (measured.about.energy_j is None) == is_silent
    [file] = place.folder.glob("silent/*.telemetry.csv")
    with file.open(newline="") as lines:
        assert {bool(row["power_w"]) for row in csv.DictReader(lines)} == {not is_silent}


def test_telemetry_ends_with_its_round_or_with_its_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that hangs in the driver does not delay the end."""
    install(monkeypatch, devices(2))
    powers = iter([100_000, 200_000, 110_000])

    def power(device: Device) -> int:
        if (found := next(powers, None)) is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return found

    monkeypatch.setattr(pynvml, "nvmlDeviceGetPowerUsage", power)
    with open_gpus(["GPU-0", "GPU-1"]) as gpus:
        answers = recorded(gpus)
    assert [(one["power_w"], one["gpu"]) for one in answers] == [(100, 0), (200, 1), (110, 0)]
    first = (5.0, 40, 1980.0, 2600, "sw_power_cap", 7000, 7000, 0)
    assert tuple(answers[0].values())[2:] == first

    monkeypatch.setattr(telemetry, "END_S", 0.01)
    asked, answered = threading.Event(), threading.Event()

    def hang(*_: object, **__: object) -> None:
        asked.set()
        answered.wait()
        raise GpuError("lost")

    monkeypatch.setattr(Gpu, "readings", hang)
    with telemetry.recording([GPU]) as answers:
        assert asked.wait(60)
        (thread,) = (each for each in threading.enumerate() if "(record)" in each.name)
    assert thread.is_alive() and answers == []
    answered.set()
    thread.join(60)
    assert not thread.is_alive()


def test_telemetry_belongs_to_the_visit_it_fell_in() -> None:
    def at(second: float) -> str:
        return f"2026-01-02T03:04:{second:06.3f}Z"

    unknown = dict.fromkeys(columns(Reading)[3:])
    known: dict[str, Any] = {**unknown, "power_w": 100.5, "gpu": 0}
    answers = [{**known, "time": at(s)} for s in (9.9, 10.0, 11.9, 12.0, 14.5)]
    visits = [Visit(at(second), name, "n=1") for second, name in ((10, "one"), (12, "two"))]
    found = [*readings_of([*answers, {**known, "time": at(15), "power_w": -1.0}], visits, 3)]
    cells = [(one.variant, one.case, one.round, one.time) for one in found]
    assert [(one.power_w, one.throttle) for one in found] == [(100.5, "")] * 4
    at_s = zip(("one", "one", "two", "two"), (10, 11.9, 12, 14.5), strict=True)
    assert cells == [(variant, "n=1", 3, at(second)) for variant, second in at_s]


def test_two_gpus_have_access_if_each_reaches_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, devices(3), can_access=lambda i, j: (i, j) != (2, 1))
    with open_gpus([0, 1, 2]) as gpus:
        known = {(0, 1): True, (0, 2): True, (1, 2): False}
        assert (peer_access(gpus[:1]), peer_access(gpus)) == ({}, known)
        named = {"0-1": True, "0-2": True, "1-2": False}
        assert (describe(gpus[:1]).peer_access, describe(gpus).peer_access) == (None, named)


def test_nvlinks_without_a_switch_count_for_their_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = (Device(index).bus_id for index in range(3))
    ends = [[b, b, c, None], [a, a, None, None], [a, None, None, None]]
    for found, known in (
        (devices(3), {"0-1": 2, "0-2": 2, "1-2": 2}),
        ([Device(n, links=links) for n, links in enumerate(ends)], {"0-1": 2, "0-2": 1, "1-2": 0}),
        (devices(3, links=()), dict.fromkeys(("0-1", "0-2", "1-2"))),
    ):
        install(monkeypatch, found)
        with open_gpus([0, 1, 2]) as gpus:
            assert (nvlinks(gpus[:1]), nvlinks(gpus)) == ({}, known)
