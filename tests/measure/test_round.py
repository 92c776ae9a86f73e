"""One round: its order, how often a cell is timed, and what comes before each time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from analysis.config import Grid
from analysis.measure.cell import Cell, Operation, Skip
from analysis.measure.plan import Plan, Target, pending
from analysis.measure.rig import Bound
from analysis.measure.round import Bench, RoundJob
from analysis.study import Study, load_study
from tests.measure.studies import (
    FILL,
    GRID,
    HERE,
    METHOD,
    describe,
    run,
    samples_at,
    write_study,
)
from tests.synthetic import RUN


def job(study: Study, number: int, grid: str = "default") -> RoundJob:
    names = tuple(study.variant_names)
    file = study.folder / "study.yaml"
    return RoundJob(file, names, grid, 1, 0.05, RUN, number, Path(), None, Path("round.csv"))


def test_each_round_covers_every_cell_once_in_an_order_of_its_own() -> None:
    orders = [
        [str(cell) for cell in Bench(job(METHOD, number), None).schedule()] for number in range(4)
    ]
    every = sorted(
        f"{variant.name} {case.id}"
        for variant in METHOD.variants
        for case in variant.in_grid("default")
    )
    assert all(sorted(order) == every for order in orders)
    assert len({tuple(order) for order in orders}) == len(orders)
    # Within a case the variants stand together, and either may come first.
    pairs = [[cell.split()[0] for cell in order if cell.endswith("=67108864")] for order in orders]
    assert all(sorted(pair) == ["copy_a", "copy_b"] for pair in pairs)
    for order in orders:
        cases = [cell.split()[1] for cell in order]
        blocks = [case for case, before in zip(cases, ["", *cases], strict=False) if case != before]
        assert len(blocks) == len(set(cases))


def test_a_rounds_order_can_be_repeated() -> None:
    first, again = (
        [str(cell) for cell in Bench(job(METHOD, 5), None).schedule()] for _ in range(2)
    )
    assert first == again


def test_either_of_two_variants_may_come_first() -> None:
    leaders: Counter[str] = Counter()
    for number in range(20):
        for cell in Bench(job(METHOD, number), None).schedule():
            if cell.case.id == METHOD.headline:
                leaders[cell.variant.name] += 1
                break
    assert min(leaders["copy_a"], leaders["copy_b"]) >= 4


def test_a_case_may_be_visited_several_times_a_round(tmp_path: Path, where: Target) -> None:
    study = write_study(tmp_path / "often", {"name": "one"}, {"name": "other"})
    data = describe({"name": "one"}, {"name": "other"})
    data["cases"]["sizes"]["visits"] = 20
    (study.folder / "study.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
    study = load_study(study.folder / "study.yaml")
    order = list(Bench(job(study, 0), None).schedule())
    assert Counter(map(str, order)) == {
        f"{name} n={n}": 20 for name in ("one", "other") for n in (1, 2)
    }
    turns = [tuple(order[i : i + 2]) for i in range(0, len(order), 2)]
    assert all(len({cell.case.id for cell in turn}) == 1 for turn in turns)
    assert all({cell.variant.name for cell in turn} == {"one", "other"} for turn in turns)
    assert len({turn[0].variant.name for turn in turns}) == 2
    grid = Grid("default", rounds=2, samples=2, sample_budget_s=0.05)
    run(Plan(study, study.variants, grid, where), tmp_path)
    samples = [s for s in samples_at(where, study, "one") if s.case == "n=1"]
    numbers = [(s.round, s.sample) for s in samples if s.metric == "host_time"]
    assert sorted(numbers) == [(number, sample) for number in (0, 1) for sample in range(40)]
    assert sum(s.metric == "filled" for s in samples) == 40


def test_what_failed_on_one_visit_is_not_timed_on_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wrong(Recorded):
        def check(self) -> str:  # type: ignore[override]
            return "byte 0: expected 1, got 165"

    operation = Wrong()
    study = write_study(tmp_path / "wrong", {"name": "one"})
    bench = Bench(replace(job(study, 0), out=tmp_path / "round.csv"), None)
    monkeypatch.setattr(bench, "_rig", rig_of(operation))
    monkeypatch.setattr(bench, "_is_warm", True)
    cell = Cell(study.variants[0], study.variants[0].cases[0])
    bench.measure(cell)
    bench.measure(cell)
    assert operation.events == ["poison", "launch"]
    assert [row.status for row in bench.rows([cell, cell])] == ["failed"]


def test_a_slow_cell_takes_fewer_samples_but_one(tmp_path: Path, where: Target) -> None:
    study = write_study(tmp_path / "slow", {"name": "one"}, {"name": "slow"}, {"name": "slower"})
    for name, seconds in (("slow", 0.02), ("slower", 0.2)):
        source = study.folder / f"{name}.py"
        source.write_text(f"import time\n{FILL}    time.sleep({seconds})\n")
    grid = Grid("smoke", rounds=1, samples=5, sample_budget_s=0.08)
    run(Plan(study, study.variants, grid, where), tmp_path)
    counts = {
        name: sum(s.metric == "host_time" for s in samples_at(where, study, name))
        for name in study.variant_names
    }
    assert counts["one"] == 5
    assert 1 <= counts["slow"] <= 4
    assert counts["slower"] == 1


def test_a_case_takes_the_metrics_and_samples_it_names(tmp_path: Path, where: Target) -> None:
    study = write_study(tmp_path / "named", {"name": "one"})
    data = describe({"name": "one", "cases": ["sizes", "few", "none"]})
    data["cases"]["few"] = {"n": [3], "payload_bytes": 24, "metrics": ["host_time"], "samples": 1}
    data["cases"]["none"] = {"n": [4], "payload_bytes": 32, "metrics": []}
    (study.folder / "study.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
    study = load_study(study.folder / "study.yaml")
    grid = Grid("default", rounds=1, samples=2, sample_budget_s=0.05)
    run(Plan(study, study.variants, grid, where), tmp_path)
    counts = Counter((s.case, s.metric) for s in samples_at(where, study, "one"))
    assert {key: count for key, count in counts.items() if key[1] == "host_time"} == {
        ("n=1", "host_time"): 2,
        ("n=2", "host_time"): 2,
        ("n=3", "host_time"): 1,
    }
    # What the workload takes itself is not affected.
    assert all(counts[f"n={n}", "filled"] == 1 for n in (1, 2, 3, 4))


def test_a_case_this_machine_cannot_run_is_skipped_with_its_reason(
    tmp_path: Path, where: Target
) -> None:
    study = write_study(tmp_path / "skip", {"name": "refuses"})
    run(Plan(study, study.variants, GRID, where), study.folder)
    rows = samples_at(where, study, "refuses")
    refused = [row for row in rows if row.case == "n=2"]
    assert {(row.status, row.reason, row.value) for row in refused} == {
        ("skipped", "too large for this machine", None)
    }
    assert {row.status for row in rows if row.case == "n=1"} == {"ok"}
    assert not pending(study, where, "default", HERE)


def test_the_time_to_submit_is_a_part_of_the_time_until_done(tmp_path: Path) -> None:
    operation = Recorded()
    operation.launch = lambda stream: time.sleep(0.002)  # type: ignore[method-assign]
    variant = write_study(tmp_path / "slow", {"name": "one"}).variants[0]
    (times,) = Bound(variant, operation, 0, lambda: time.sleep(0.02)).host_times(1)
    assert 0.002 <= times["submit_time"] < 0.02 <= times["host_time"]


class Recorded(Operation):
    """Notes what is asked of it."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def poison(self) -> None:
        self.events.append("poison")

    def check(self) -> None:
        self.events.append("check")

    def launch(self, stream: int) -> None:
        self.events.append("launch")

    def settle(self) -> None:  # type: ignore[override]
        self.events.append("settle")


def rig_of(operation: Operation) -> SimpleNamespace:
    """Binds whatever it is asked for to `operation`."""
    return SimpleNamespace(
        bind=lambda variant, case, stream: Bound(variant, operation, stream, lambda: None)
    )


def measured(
    folder: Path, operation: Operation, monkeypatch: pytest.MonkeyPatch, **entry: object
) -> Cell:
    """The cell of `operation` after it was measured, two samples a metric."""
    study = write_study(folder / "recorded", {"name": "one", **entry})
    bench = Bench(replace(job(study, 0), samples=2, out=folder / "round.csv"), None)
    monkeypatch.setattr(bench, "_rig", rig_of(operation))
    monkeypatch.setattr(bench, "_is_warm", True)
    cell = Cell(study.variants[0], study.variants[0].cases[0])
    bench.measure(cell)
    return cell


@pytest.mark.parametrize("host_work", [False, True])
def test_inputs_leave_the_caches_after_the_check_and_before_what_the_cpu_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host_work: bool
) -> None:
    operation = Recorded()
    measured(tmp_path, operation, monkeypatch, host_work=host_work)
    timed = ["settle", "launch"] if host_work else ["launch"]
    untimed = ["poison", "launch", "check", "settle", "launch"]
    assert operation.events == [*untimed, *timed, *timed, *timed]


def test_the_first_host_time_of_a_cell_is_thrown_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = iter([*[0.0] * 2, 0.01, *[0.0] * 9])  # the check, the launch after it, the first timed

    class SlowAtFirst(Recorded):
        def launch(self, stream: int) -> None:
            until = time.perf_counter() + next(slow)
            while time.perf_counter() < until:
                pass

    cell = measured(tmp_path, SlowAtFirst(), monkeypatch)
    times = [value for name, value in cell.values if name == "host_time"]
    assert len(times) == 2
    assert max(times) < 0.01


def test_what_the_machine_runs_out_of_in_mid_cell_skips_the_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class RunsOut(Recorded):
        def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
            raise Skip("no huge pages left")

    operation = RunsOut()
    cell = measured(tmp_path, operation, monkeypatch)
    assert (cell.skipped, cell.failure, cell.values) == ("no huge pages left", "", [])
    assert operation.events == ["poison", "launch", "check", "settle"]
