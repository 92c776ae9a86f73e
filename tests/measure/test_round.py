"""One round: its order, the number of times per cell, and the steps before each time."""

import gc
import re
import weakref
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, groupby, repeat
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import numpy as np
import pytest

from analysis import ROOT
from analysis.base.errors import FieldError
from analysis.measure import memory
from analysis.measure import round as rounds
from analysis.measure.cell import Cell, Operation, PythonLauncher, PythonOperation, Skip
from analysis.measure.plan import Place
from analysis.measure.rig import Bound, Rig
from analysis.measure.round import DISCARDED_HOST_PASSES, WARM_UP_LAUNCHES, Bench, RoundJob
from analysis.results.store.samples import to_text
from analysis.study import Study
from analysis.toolchain.modules import load_python
from tests.measure.studies import GRID, plan_of, run, samples_at, write_study
from tests.synthetic import RUN


def bench(study: Study, number: int = 0, run: str = RUN, gpus: Any = (), **grid: Any) -> Bench:
    effort = replace(GRID, **grid)
    out = study.folder / "round.csv"
    job = RoundJob(study, study.variants, effort, run, number, Path(), (), out)
    return Bench(job, gpus, Mock())


def test_rounds_have_all_cells_in_orders_that_run_and_round_decide(tmp_path: Path) -> None:
    """Cases in any order, the variants of a case beside each other in any order."""
    variants = {"name": "one"}, {"name": "other"}, {"name": "few", "cases": ["few"]}
    few = {"n": [99], "payload_bytes": "n * 8", "every": 3}
    study = write_study(tmp_path / "many", *variants, sizes={"n": list(range(1, 10))}, few=few)

    def order(number: int, run: str = RUN) -> list[tuple[str, str]]:
        cells = bench(study, number, run).schedule()
        return [(cell.variant.name, cell.case.id) for cell in cells]

    orders = [order(number) for number in range(20)]
    every = {(name, f"n={n}") for name in ("one", "other") for n in range(1, 10)}
    leaders: Counter[str] = Counter()
    for number, cells in enumerate(orders):
        of_round = {*every, *([("few", "n=99")] if number % 3 == 0 else [])}
        assert sorted(cells) == sorted(of_round)
        blocks = [case for case, _ in groupby(case for _, case in cells)]
        assert len(blocks) == len({*blocks})
        leaders[next(variant for variant, case in cells if case == "n=3")] += 1
    assert min(leaders["one"], leaders["other"]) >= 4
    assert len({tuple(dict.fromkeys(case for _, case in cells)) for cells in orders}) > 10
    assert order(5) == orders[5] != order(5, "2026-02-02T03:04:05Z")


def test_cases_have_the_visits_metrics_and_samples_of_the_study(
    tmp_path: Path, place: Place
) -> None:
    few = {"n": [3], "payload_bytes": 24, "metrics": ["host_time"], "samples": 1}
    none: dict[str, Any] = {"n": [4], "payload_bytes": 32, "metrics": []}
    variant = {"name": "one", "cases": ["sizes", "few", "none"]}
    sets: dict[str, Any] = {"sizes": {"visits": 20}, "few": few, "none": none}
    study = write_study(tmp_path / "often", variant, {"name": "other"}, **sets)
    order = list(map(str, bench(study).schedule()))
    assert Counter(order)["other n=2"] == 20
    assert {"one", "other"} == {visit.split()[0] for visit in order if visit.endswith("n=1")}
    run(plan_of(study, place, rounds=2))
    counts = Counter((s.case, s.metric) for s in samples_at(place, study, "one"))
    assert {n: counts[f"n={n}", "host_time"] for n in (1, 2, 3, 4)} == {1: 80, 2: 80, 3: 2, 4: 0}
    # Samples of the workload are one a visit.
    assert [counts[f"n={n}", "filled"] for n in (1, 2, 3, 4)] == [40, 40, 2, 2]


class Clock:
    """The clock of the round, the rig and Python's launches, which advances on request."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch | None = None) -> None:
        self.now_s = 0.0
        self.perf_counter = self.monotonic = lambda: self.now_s
        self.perf_counter_ns = lambda: round(self.now_s * 1e9)
        if monkeypatch:
            for module in ("round", "rig", "cell"):
                monkeypatch.setattr(f"analysis.measure.{module}.time", self)

    def advance(self, seconds: float) -> None:
        self.now_s += seconds


class Timed(PythonOperation):
    """Records its calls; its launch takes a known time."""

    def __init__(self, clock: Clock | None = None, launch_s: float = 0.0) -> None:
        self.events: list[str] = []
        self.clock, self.launch_s = clock or Clock(), launch_s

    def poison(self) -> None:
        self.events.append("poison")

    def check(self) -> str | None:
        self.events.append("check")
        return None

    def launch(self, stream: int) -> None:
        self.events.append("launch")
        self.clock.advance(self.launch_s)

    def settle(self) -> None:
        self.events.append("settle")


def bench_of(
    folder: Path, operation: Operation, *, gpus: Sequence[object] = (), **grid: Any
) -> tuple[Bench, Cell]:
    """A bench that has warmed up, and a cell for which it binds `operation`."""
    study = write_study(folder / "recorded", {"name": "one"})
    made = bench(study, gpus=gpus, **grid)
    made.rig = Mock(bind=lambda variant, case, stream: Bound(variant, operation, stream))
    made._is_warm = True
    return made, Cell(study.variants[0], study.variants[0].cases[0])


def gpu(mhz: Iterable[float] = (), highest: Iterable[bool] = (), why: Iterable[str] = ()) -> Mock:
    """A GPU with these answers, one after the other, and none after them."""
    answers = {"sm_clock_mhz": mhz, "is_at_highest_clock": highest, "throttle_reasons": why}
    return Mock(**{k: Mock(side_effect=chain(v, repeat(None))) for k, v in answers.items()})


def test_clocks_and_reasons_are_looked_at_through_all_visits(tmp_path: Path) -> None:
    first = gpu([1980, 1500, 1700, 1600], why=["", "hw_slowdown", "", "sw_power_cap"])
    made, cell = bench_of(tmp_path, Timed(), gpus=[first, gpu(why=["sync_boost"])])
    for _ in range(2):
        made.measure(cell)
    (row,) = made.rows([cell])
    assert (row.throttle, row.sm_mhz) == ("hw_slowdown|sw_power_cap|sync_boost", 1650.0)
    assert cast(Mock, made._tell).call_count == 2


@pytest.mark.parametrize(
    ("highest", "launches"), [([True] * 99, 3), ([True, False, *[True] * 97], 4), ([], 6)]
)
def test_warm_up_ends_early_once_the_clock_has_been_the_highest_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, highest: list[bool], launches: int
) -> None:
    for name, seconds in (("WARM_UP_S", 0.75), ("HIGHEST_CLOCK_S", 0.25)):
        monkeypatch.setattr(rounds, name, seconds)
    operation = Timed(Clock(monkeypatch), launch_s=0.125)
    made, cell = bench_of(tmp_path, operation, gpus=[gpu(highest=highest)])
    made._is_warm = False
    for _ in range(2):
        made.measure(Cell(cell.variant, cell.case))
    assert operation.events.index("poison") == launches
    assert operation.events.count("launch") == launches + 2 * (1 + 1), "warmed up once"


def test_a_wrong_output_is_not_timed_again_and_discards_times_of_earlier_visits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = Timed()
    made, cell = bench_of(tmp_path, operation)
    made.measure(cell)
    assert {row.status for row in made.rows([cell])} == {"ok"}
    operation.events.clear()
    monkeypatch.setattr(Timed, "check", lambda self: "byte 0: expected 1, got 165")
    for _ in range(2):
        made.measure(cell)
    assert operation.events == ["poison", "launch"]
    rows = list(made.rows([cell, cell]))
    assert [(row.status, row.values) for row in rows] == [("failed", {})]
    assert to_text(rows)


@pytest.mark.parametrize(("seconds", "count"), [(1e-4, 5), (0.02, 4), (0.2, 1)])
def test_slow_cell_takes_fewer_samples_but_at_least_one_and_needs_no_warm_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, count: int
) -> None:
    operation = Timed(Clock(monkeypatch), seconds)
    made, cell = bench_of(tmp_path, operation, samples=5, sample_budget_s=0.08)
    launches = operation.events.count
    operation.own_samples = lambda *_: {"filled": [launches("launch")]}  # type: ignore[method-assign]
    made.measure(cell)
    times = [value for metric, value in cell.values if metric == "host_time"]
    assert times == pytest.approx([seconds] * count)
    assert ("filled", 1 + (WARM_UP_LAUNCHES if seconds < 0.01 else 0)) in cell.values


def test_a_workload_may_skip_a_cell_and_takes_only_metrics_and_the_clock_of_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = Timed()
    made, cell = bench_of(tmp_path, operation)
    operation.own_samples = Mock(side_effect=Skip("no huge pages left"))  # type: ignore[method-assign]
    made.measure(cell)
    assert (cell.skipped, cell.failure, cell.values) == ("no huge pages left", "", [])
    operation.own_samples = Mock(return_value={"filed": [1.0]})  # type: ignore[method-assign]
    with pytest.raises(FieldError, match=r"own_samples: expected one of .*'host_time'.* 'filed'"):
        made.measure(Cell(cell.variant, cell.case))
    operation.own_samples = Mock(return_value={})  # type: ignore[method-assign]
    launchers = {"cpp": PythonLauncher(lambda stream: None), "python": Mock()}
    for named, launcher in launchers.items():
        monkeypatch.setattr(Timed, "launcher", launcher)
        other = Cell(replace(cell.variant, clock=named), cell.case)  # type: ignore[arg-type]
        with pytest.raises(FieldError, match=f"variant one: clock: expected .*, got '{named}'"):
            made.measure(other)


@pytest.mark.parametrize("host_work", [False, True])
def test_host_times_follow_a_flush_of_the_l2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host_work: bool
) -> None:
    """Settling comes between the flush and the clock, so that no submission follows it."""
    operation = Timed()
    note = operation.events.append
    monkeypatch.setattr(memory, "l2_span", lambda: (64, 128))
    monkeypatch.setattr(memory, "flush_l2", lambda *given: note(f"flush {given}"))
    launcher = Mock(time_launch=Mock(return_value=(0.002, 0.022)))  # as one with a clock in C++
    monkeypatch.setattr(Timed, "launcher", launcher)
    (plain,) = write_study(tmp_path / "a", {"name": "one", "host_work": host_work}).variants
    for needs, warm in (("gpu",), False), (("gpu",), True), ((), False):
        operation.events.clear()
        bound = Bound(replace(plain, needs=needs), operation, 7 if needs else 0)
        (times,) = bound.host_times(1, warm=warm)
        assert times == {"submit_time": 0.002, "host_time": 0.022}
        span = (0, 0) if warm or not needs else (64, 128)
        launcher.time_launch.assert_called_with(bound.stream, *((0, 0) if host_work else span))
        flush = [f"flush {(7, *span)}"] if needs else []
        assert operation.events == ([*flush, "settle"] if host_work else [])


def test_the_time_to_submit_ends_before_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    monkeypatch.setattr(memory, "flush_l2", lambda *_: clock.advance(5))
    monkeypatch.setattr(memory, "synchronize", lambda stream: clock.advance(0.02))
    times = Timed(clock, launch_s=0.002).launcher.time_launch(7, 0, 64)
    assert times == pytest.approx((0.002, 0.022))


RECORDER = '''\
"""Records every call, and with what."""

from analysis.measure.cell import Operation, PythonLauncher, Skip

CALLS = []
REFUSED = []


class Inputs:
    def before_bind(self, variants):
        CALLS.append("before_bind " + " ".join(variant.name for variant, _ in variants))

    def bind(self, variant, module):
        CALLS.append(f"bind {variant.name} {module.__name__.rpartition('.')[2]}")
        return Recorded()


class Workload(Inputs):
    @classmethod
    def before_cuda(cls):
        CALLS.append("before_cuda")

    def __init__(self, constants, rng):
        CALLS.append(f"Workload {dict(constants)}")

    def prepare(self, case):
        CALLS.append(f"prepare {case.id}")
        if case.id in REFUSED:
            raise Skip("not here")
        return MADE


def noted(name):
    return lambda self, *stream: CALLS.append(name)


class Recorded(Operation):
    launcher = PythonLauncher(lambda stream: CALLS.append("launch"))
    poison, check, reset, settle = map(noted, ("poison", "check", "reset", "settle"))

    def own_samples(self, stream, count):
        CALLS.append("own_samples")
        return {}
'''


def recorded(folder: Path, *names: str, made: str = "None") -> tuple[Study, list[str]]:
    """A study whose workload records its calls, and the record; `made` is what it prepares."""
    folder.mkdir()
    (folder / "workload.py").write_text(RECORDER.replace("MADE", made))
    study = write_study(folder, *({"name": name, "host_work": True} for name in names))
    return study, load_python(study, "workload").CALLS


def rig_of(study: Study) -> Rig:
    return Rig(study, study.folder, np.random.default_rng(0), study.variants)


def test_a_workload_is_called_in_the_pages_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analysis.measure.round.WARM_UP_S", 0.001)
    study, calls = recorded(tmp_path / "a", "only")
    out = tmp_path / "round.csv"
    job = RoundJob(study, study.variants, GRID, RUN, 0, tmp_path, (), out)
    bench = Bench(job, [], Mock())
    cell, *_ = bench.schedule()
    bench.measure(cell)
    made = [call.split()[0] for call in calls]

    # The calls in each numbered row of the page's table.
    page = (ROOT / "docs" / "workload.md").read_text()
    found = re.findall(r"^\| (\d+) \| (.*?) \| [^|]* \|$", page, re.MULTILINE)
    order = {int(number): re.findall(r"`(?:\w+\.)?(\w+)\(", calls) for number, calls in found}
    assert list(order) == list(range(14))
    on_gpu_only = 11
    samples = order.pop(13)
    assert order.pop(on_gpu_only) == ["reset", "launch"]
    order[9] *= WARM_UP_LAUNCHES
    once = [call for number in sorted(order) for call in order[number]]
    # Warming up launches as often as it can.
    warm_up = once.index("launch")
    count = sum(name == "host_time" for name, _ in cell.values)
    assert made[warm_up : warm_up + 2] == ["launch", "launch"]
    assert [call for call, _ in groupby(made)] == [
        *once,
        *samples * (DISCARDED_HOST_PASSES + count),
    ]
    assert count == GRID.samples

    calls.clear()
    bound = rig_of(study).bind(study.variants[0], study.variants[0].cases[0])
    bound.poison_and_launch()
    bound.check()
    expected = [call for number in (0, 1, 2, 3, 5, 6, 7, 8) for call in order[number]]
    assert [call.split()[0] for call in calls] == expected


def test_a_case_is_prepared_once_for_all_variants_of_one_set_of_constants(tmp_path: Path) -> None:
    """One that the workload rejects does not count as prepared."""
    study, calls = recorded(tmp_path / "a", "one", "two")
    rig = rig_of(study)
    one, two = study.variants
    first, second = one.cases
    for variant, case in ((one, first), (two, first), (two, second), (one, first)):
        rig.bind(variant, case)
    assert calls[1:] == [
        *("Workload {}", "prepare n=1", "before_bind one two", "bind one one", "bind two two"),
        *("prepare n=2", "before_bind one two", "bind two two"),
        *("prepare n=1", "before_bind one two", "bind one one"),
    ]
    calls.clear()
    other = replace(two, constants={"width": 2})
    for variant in (one, other, one, other):
        rig.bind(variant, first)
    kinds = [call for call in calls if call.startswith(("Workload", "prepare", "before"))]
    assert kinds == ["Workload {'width': 2}", "prepare n=1", "before_bind "]
    calls.clear()
    load_python(study, "workload").REFUSED.append("n=2")
    for _ in range(2):
        with pytest.raises(Skip, match="not here"):
            rig.bind(one, second)
    rig.bind(one, first)
    assert [call for call in calls if call.startswith("prepare")] == [
        *("prepare n=2", "prepare n=2", "prepare n=1")
    ]


@pytest.mark.parametrize("made", ["None", "Inputs()"])
def test_inputs_live_as_long_as_their_operations(tmp_path: Path, made: str) -> None:
    study, _ = recorded(tmp_path / "a", "one", made=made)
    rig = rig_of(study)
    for case in study.variants[0].cases:
        bound = rig.bind(study.variants[0], case)
    held: list[weakref.ref[Any]] = [
        weakref.ref(rig._workloads["workload", ()]),
        weakref.ref(rig._prepared["workload", ()][1]),
    ]
    del rig
    gc.collect()
    assert all(reference() is not None for reference in held)
    del bound
    gc.collect()
    assert all(reference() is None for reference in held)
