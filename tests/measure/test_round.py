"""One round: its order, the number of times per cell, and the steps before each time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from analysis.base.errors import FieldError
from analysis.base.gpu import Gpu
from analysis.measure import memory, rig
from analysis.measure import round as rounds
from analysis.measure.cell import Cell, Operation, PythonLauncher, PythonOperation, Skip
from analysis.measure.places import Place
from analysis.measure.rig import Bound
from analysis.measure.round import WARM_UP_LAUNCHES, Bench, RoundJob
from analysis.results.store.samples import to_text
from analysis.study import Study
from tests.measure.studies import GRID, plan_of, run, samples_at, write_study
from tests.synthetic import RUN


def job(study: Study, number: int) -> RoundJob:
    grid = replace(GRID, samples=1)
    return RoundJob(study, study.variants, grid, RUN, number, Path(), (), Path("round.csv"))


@pytest.fixture
def many_cells(tmp_path: Path) -> Study:
    """Two variants with nine cases, and one with a single case."""
    variants = {"name": "one"}, {"name": "other"}, {"name": "few", "cases": ["few"]}
    few = {"n": [7], "payload_bytes": "n * 8"}
    return write_study(tmp_path / "many", *variants, sizes={"n": list(range(1, 10))}, few=few)


def order(study: Study, number: int) -> list[str]:
    """The cells of a round."""
    return [str(cell) for cell in Bench(job(study, number), [], Mock()).schedule()]


def test_each_round_covers_every_cell_once_in_random_order(many_cells: Study) -> None:
    orders = [order(many_cells, number) for number in range(4)]
    every = sorted(
        f"{variant.name} {case.id}"
        for variant in many_cells.variants
        for case in variant.in_grid("default")
    )
    assert all(sorted(order) == every for order in orders)
    assert len({tuple(order) for order in orders}) == len(orders)
    assert len({tuple(dict.fromkeys(cell.split()[1] for cell in order)) for order in orders}) > 1
    # The variants of a case are adjacent, in any order.
    pairs = [[cell.split()[0] for cell in cells if cell.endswith("n=3")] for cells in orders]
    assert all(sorted(pair) == ["one", "other"] for pair in pairs)
    for cells in orders:
        cases = [cell.split()[1] for cell in cells]
        blocks = [case for case, before in zip(cases, ["", *cases], strict=False) if case != before]
        assert len(blocks) == len(set(cases))


def test_another_run_has_another_order_and_the_same_has_the_same(many_cells: Study) -> None:
    assert order(many_cells, 5) == order(many_cells, 5)
    first = job(many_cells, 0)
    orders = [
        [str(cell) for cell in Bench(replace(first, run=run), [], Mock()).schedule()]
        for run in (RUN, "2026-02-02T03:04:05Z")
    ]
    assert orders[0] != orders[1]


def test_either_of_two_variants_may_come_first(many_cells: Study) -> None:
    leaders: Counter[str] = Counter()
    for number in range(20):
        first = next(cell for cell in order(many_cells, number) if cell.endswith("n=3"))
        leaders[first.split()[0]] += 1
    assert min(leaders["one"], leaders["other"]) >= 4


def test_a_case_may_be_measured_in_some_rounds_only(many_cells: Study) -> None:
    few = replace(many_cells.variant("few").cases[0], every=3)
    variants = (replace(v, cases=(few,)) if v.name == "few" else v for v in many_cells.variants)
    seldom = replace(many_cells, variants=tuple(variants))
    measured = [
        sum(cell.startswith("few ") for cell in order(seldom, number)) for number in range(4)
    ]
    assert measured == [1, 0, 0, 1]


@pytest.mark.usefixtures("quick")
def test_a_case_may_be_visited_several_times_a_round(tmp_path: Path, place: Place) -> None:
    variants = {"name": "one"}, {"name": "other"}
    study = write_study(tmp_path / "often", *variants, sizes={"visits": 20})
    order = list(Bench(job(study, 0), [], Mock()).schedule())
    assert Counter(map(str, order)) == {
        f"{name} n={n}": 20 for name in ("one", "other") for n in (1, 2)
    }
    turns = [tuple(order[i : i + 2]) for i in range(0, len(order), 2)]
    assert all(len({cell.case.id for cell in turn}) == 1 for turn in turns)
    assert all({cell.variant.name for cell in turn} == {"one", "other"} for turn in turns)
    assert len({turn[0].variant.name for turn in turns}) == 2
    run(plan_of(study, place, rounds=2))
    samples = [s for s in samples_at(place, study, "one") if s.case == "n=1"]
    numbers = [(s.round, s.sample) for s in samples if s.metric == "host_time"]
    assert sorted(numbers) == [(number, sample) for number in (0, 1) for sample in range(40)]
    assert sum(s.metric == "filled" for s in samples) == 40


@pytest.mark.usefixtures("quick")
def test_case_selects_metrics_and_samples(tmp_path: Path, place: Place) -> None:
    few = {"n": [3], "payload_bytes": 24, "metrics": ["host_time"], "samples": 1}
    none: dict[str, Any] = {"n": [4], "payload_bytes": 32, "metrics": []}
    variant = {"name": "one", "cases": ["sizes", "few", "none"]}
    study = write_study(tmp_path / "named", variant, few=few, none=none)
    run(plan_of(study, place, rounds=1))
    counts = Counter((s.case, s.metric) for s in samples_at(place, study, "one"))
    assert {key: count for key, count in counts.items() if key[1] == "host_time"} == {
        ("n=1", "host_time"): 2,
        ("n=2", "host_time"): 2,
        ("n=3", "host_time"): 1,
    }
    # Samples of the workload are not affected.
    assert all(counts[f"n={n}", "filled"] == 1 for n in (1, 2, 3, 4))


class Recorded(PythonOperation):
    """Records its calls."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def poison(self) -> None:
        self.events.append("poison")

    def check(self) -> None:
        self.events.append("check")

    def launch(self, stream: int) -> None:
        self.events.append("launch")

    def settle(self) -> None:
        self.events.append("settle")


class Clock:
    """A clock that advances on request."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def perf_counter(self) -> float:
        return self.now_s

    def perf_counter_ns(self) -> int:
        return round(self.now_s * 1e9)

    def monotonic(self) -> float:
        return self.now_s

    def advance(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Clocks of the rig and of Python's launches."""
    clock = Clock()
    monkeypatch.setattr(rig, "time", clock)
    monkeypatch.setattr("analysis.measure.cell.time", clock)
    return clock


class Timed(Recorded):
    """An operation with a known time of its launch."""

    def __init__(self, clock: Clock, launch_s: float) -> None:
        super().__init__()
        self.clock, self.launch_s = clock, launch_s

    def launch(self, stream: int) -> None:
        super().launch(stream)
        self.clock.advance(self.launch_s)


def rig_of(operation: Operation) -> SimpleNamespace:
    """Binds every variant to `operation`."""
    return SimpleNamespace(bind=lambda variant, case, stream: Bound(variant, operation, stream))


def bench_of(
    folder: Path,
    operation: Operation,
    monkeypatch: pytest.MonkeyPatch,
    *,
    gpus: Sequence[Gpu] = (),
    host_work: bool = False,
    samples: int = 2,
    sample_budget_s: float = 0.05,
) -> tuple[Bench, Cell]:
    """A bench that has warmed up, and a cell for which it binds `operation`."""
    study = write_study(folder / "recorded", {"name": "one", "host_work": host_work})
    grid = replace(GRID, samples=samples, sample_budget_s=sample_budget_s)
    bench = Bench(replace(job(study, 0), out=folder / "round.csv", grid=grid), gpus, Mock())
    monkeypatch.setattr(bench, "_rig", rig_of(operation))
    monkeypatch.setattr(bench, "_is_warm", True)
    return bench, Cell(study.variants[0], study.variants[0].cases[0])


def measured(
    folder: Path, operation: Operation, monkeypatch: pytest.MonkeyPatch, **settings: Any
) -> Cell:
    """The cell of `operation` after it was measured; `settings` as of `bench_of`."""
    bench, cell = bench_of(folder, operation, monkeypatch, **settings)
    bench.measure(cell)
    return cell


def test_clocks_and_reasons_are_looked_at_through_all_visits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks = iter([1980, 1500, 1700, 1600])
    reasons = iter(["", "hw_slowdown", "", "sw_power_cap"])
    first = SimpleNamespace(
        sm_clock_mhz=lambda: next(clocks), throttle_reasons=lambda: next(reasons)
    )
    second = SimpleNamespace(throttle_reasons=lambda: "sync_boost")
    gpus = cast(Sequence[Gpu], [first, second])
    bench, cell = bench_of(tmp_path, Recorded(), monkeypatch, gpus=gpus)
    bench.measure(cell)
    bench.measure(cell)
    (row,) = bench.rows([cell])
    assert (row.throttle, row.sm_mhz) == ("hw_slowdown|sw_power_cap|sync_boost", 1650.0)
    sent = [call.args[0].visit for call in bench._parent.send.call_args_list]  # type: ignore[attr-defined]
    assert [(visit.variant, visit.case) for visit in sent] == [("one", "n=1")] * 2


@pytest.mark.parametrize(
    ("clocks", "launches"), [([True] * 99, 3), ([True, False, *[True] * 97], 4), ([False] * 99, 6)]
)
def test_warm_up_ends_early_once_the_clock_has_been_the_highest_for_a_while(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    clock: Clock,
    clocks: Sequence[bool],
    launches: int,
) -> None:
    for name, seconds in (("WARM_UP_S", 0.75), ("HIGHEST_CLOCK_S", 0.25)):
        monkeypatch.setattr(rounds, name, seconds)
    looks = iter(clocks)
    gpu = SimpleNamespace(is_at_highest_clock=lambda: next(looks))
    monkeypatch.setattr(rounds, "time", clock)
    bench, _ = bench_of(tmp_path, Recorded(), monkeypatch, gpus=cast(Sequence[Gpu], [gpu]))
    operation = Timed(clock, launch_s=0.125)
    bench._warm_up(cast(Bound, SimpleNamespace(launch=lambda: operation.launch(0))))
    assert operation.events == ["launch"] * launches


class Compiled:
    """A launcher with a clock in C++, as far as Python sees it."""

    def __init__(self) -> None:
        self.timed: list[tuple[int, int, int]] = []

    def launch(self, stream: int) -> None:
        """Do nothing."""

    def time_launch(self, stream: int, l2: int, l2_bytes: int) -> tuple[float, float]:
        self.timed.append((stream, l2, l2_bytes))
        return 0.002, 0.022


@pytest.mark.parametrize("host_work", [False, True])
def test_host_times_follow_a_flush_of_the_l2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host_work: bool
) -> None:
    """Settling comes between the flush and the clock, so that no submission follows it."""
    monkeypatch.setattr(memory, "l2_span", lambda: (64, 128))
    operation = Recorded()
    note = operation.events.append
    monkeypatch.setattr(memory, "flush_l2", lambda *given: note(f"flush {given}"))
    monkeypatch.setattr(Recorded, "launcher", launcher := Compiled())
    (plain,) = write_study(tmp_path / "a", {"name": "one", "host_work": host_work}).variants
    variant = replace(plain, needs=("gpu",))
    (times,) = Bound(variant, operation, 7).host_times(1)
    assert times == {"submit_time": 0.002, "host_time": 0.022}
    assert launcher.timed == [(7, 0, 0) if host_work else (7, 64, 128)]
    assert operation.events == (["flush (7, 64, 128)", "settle"] if host_work else [])


@pytest.mark.parametrize(
    ("clock_of", "launcher"), [("cpp", PythonLauncher(lambda stream: None)), ("python", Compiled())]
)
def test_a_clock_that_study_yaml_does_not_name_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock_of: Any, launcher: Any
) -> None:
    operation = Recorded()
    monkeypatch.setattr(Recorded, "launcher", launcher)
    bench, cell = bench_of(tmp_path, operation, monkeypatch)
    cell.variant = replace(cell.variant, clock=clock_of)
    with pytest.raises(FieldError, match=f"variant one: clock: expected .*, got '{clock_of}'"):
        bench.measure(cell)


def test_clocks_rise_before_the_first_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    monkeypatch.setattr(rounds, "time", clock)
    operation = Timed(clock, launch_s=0.002)
    bench, cell = bench_of(tmp_path, operation, monkeypatch)
    monkeypatch.setattr(bench, "_is_warm", False)
    for _ in range(2):
        bench.measure(Cell(cell.variant, cell.case))
    idle_s = 0.002 * operation.events.index("poison")
    assert idle_s >= 0.1 and operation.events[:2] == ["launch", "launch"]
    assert operation.events.count("launch") < 1.5 * operation.events.index("poison")


def test_a_wrong_output_is_not_timed_again_and_discards_times_of_earlier_visits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class WrongLater(Recorded):
        def check(self) -> str | None:  # type: ignore[override]
            super().check()
            return "byte 0: expected 1, got 165" if self.events.count("check") > 1 else None

    operation = WrongLater()
    bench, cell = bench_of(tmp_path, operation, monkeypatch)
    bench.measure(cell)
    assert {row.status for row in bench.rows([cell])} == {"ok"}
    before = len(operation.events)
    bench.measure(cell)
    bench.measure(cell)
    assert operation.events[before:] == ["poison", "launch", "check"]
    rows = list(bench.rows([cell, cell]))
    assert [(row.status, row.values) for row in rows] == [("failed", {})]
    assert to_text(rows)


@pytest.mark.parametrize(("seconds", "count"), [(1e-4, 5), (0.02, 4), (0.2, 1)])
def test_slow_cell_takes_fewer_samples_but_at_least_one_and_needs_no_warm_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock, seconds: float, count: int
) -> None:
    class Counting(Timed):
        def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
            return {"filled": [self.events.count("launch")]}

    slow = Counting(clock, launch_s=seconds)
    cell = measured(tmp_path, slow, monkeypatch, samples=5, sample_budget_s=0.08)
    times = [value for metric, value in cell.values if metric == "host_time"]
    assert times == pytest.approx([seconds] * count)
    assert ("filled", 1 + (WARM_UP_LAUNCHES if seconds < 0.01 else 0)) in cell.values


def test_a_workload_may_skip_a_cell_and_takes_only_metrics_of_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class RunsOut(Recorded):
        def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
            raise Skip("no huge pages left")

    class Misnamed(Recorded):
        def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
            return {"filed": [1.0]}

    cell = measured(tmp_path, RunsOut(), monkeypatch)
    assert (cell.skipped, cell.failure, cell.values) == ("no huge pages left", "", [])
    with pytest.raises(FieldError, match=r"own_samples: expected one of .*'host_time'.* 'filed'"):
        measured(tmp_path / "misnamed", Misnamed(), monkeypatch)


def test_the_time_to_submit_is_a_part_of_the_time_until_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    monkeypatch.setattr(memory, "flush_l2", lambda *_: clock.advance(5))
    monkeypatch.setattr(memory, "synchronize", lambda stream: clock.advance(0.02))
    times = Timed(clock, launch_s=0.002).launcher.time_launch(7, 0, 64)
    assert times == pytest.approx((0.002, 0.022))
    launcher = Compiled()
    monkeypatch.setattr(Recorded, "launcher", launcher)
    bench, cell = bench_of(tmp_path, Recorded(), monkeypatch)
    cell.variant = replace(cell.variant, clock="cpp")
    metrics = dict.fromkeys(("host_time", "submit_time"), bench.study.metrics["host_time"])
    bench.study = replace(bench.study, metrics=metrics)
    bench.measure(cell)
    assert dict(cell.values) == pytest.approx({"host_time": 0.022, "submit_time": 0.002})
    assert {*launcher.timed} == {(0, 0, 0)}  # of the CPU alone
