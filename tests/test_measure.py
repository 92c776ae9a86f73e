"""The measuring engine on host code: rounds, failures, resumption, and what is pending."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from analysis.build.toolchain import find_toolchain
from analysis.config import Grid, load_config
from analysis.errors import HotpathError
from analysis.gpu import Gpu
from analysis.measure import plan as plans
from analysis.measure.__main__ import other_users, refuse_other_machine
from analysis.measure.cell import Cell, Operation
from analysis.measure.needs import Provision
from analysis.measure.plan import Plan, Target, pending, target, with_companions
from analysis.measure.publish import publish
from analysis.measure.round import Bench, RoundJob, host_times
from analysis.measure.run import Host, round_file, run_id, run_rounds
from analysis.results.samples import MalformedSamples, Sample, read_samples
from analysis.results.store import load_variant
from analysis.source import fingerprint
from analysis.study import Study, discover, load_study
from tests.synthetic import RUN

GATHER = discover()["h2d_gather"]
METHOD = discover()["method"]
HERE = Provision(None, "13.0")
WITH_GPU = Provision(Gpu(None, "GPU", "GPU-0", 0, "sm_90", ""), "13.0")
GRID = Grid("default", rounds=3, samples=2, sample_budget_s=0.05)

WORKLOAD = '''\
"""Fill a buffer with ones."""

from analysis.measure.cell import Operation

POISON = 0xA5


class Workload:
    def __init__(self, constants, rng):
        self.out = bytearray()

    def prepare(self, case):
        self.out = bytearray(case.number("n") * 8)

    def bind(self, variant, module):
        if hasattr(module, "refuse"):
            module.refuse(len(self.out))
        return Bound(module, self.out)


class Bound(Operation):
    def __init__(self, module, out):
        self.module, self.out = module, out
        self.reset = getattr(module, "reset", None)

    def poison(self):
        self.out[:] = bytes([POISON]) * len(self.out)

    def launch(self, stream):
        self.module.fill(self.out)

    def check(self):
        wrong = [i for i, byte in enumerate(self.out) if byte != 1]
        return f"byte {wrong[0]}: expected 1, got {self.out[wrong[0]]}" if wrong else None

    def own_samples(self, stream, count):
        return {"filled": [len(self.out)]}
'''
FILL = '''\
"""Fill at once."""


def fill(out):
    out[:] = b"\\x01" * len(out)
'''
WRONG = '''\
"""Forget the last byte of a large buffer."""


def fill(out):
    size = len(out) if len(out) <= 8 else len(out) - 1
    out[:size] = b"\\x01" * size
'''
TROUBLE = '''\
"""Fill, but in the round that the file `trouble` names do what it says."""

import os
import signal
import time
from pathlib import Path

HERE = Path(__file__).parent
with (HERE / "rounds").open("a") as file:
    file.write("x")
ROUND = (HERE / "rounds").stat().st_size
WANTED = (HERE / "trouble").read_text().split() if (HERE / "trouble").exists() else ["0", ""]


def fill(out):
    out[:] = b"\\x01" * len(out)
    if ROUND != int(WANTED[0]):
        return
    match WANTED[1]:
        case "raise":
            raise ValueError("no such luck")
        case "exit":
            os._exit(7)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang":
            time.sleep(600)
'''


REFUSES = '''\
"""Refuse all but the smallest buffer."""

from analysis.measure.cell import Skip


def refuse(size):
    if size > 8:
        raise Skip("too large for this machine")


def fill(out):
    out[:] = b"\\x01" * len(out)
'''
WITH_RESET = '''\
"""Fill at once, after a reset that takes long; both are written down."""

import time
from pathlib import Path

TOLD = Path(__file__).with_name("told")


def tell(what):
    with TOLD.open("a") as file:
        file.write(f"{what} ")


def reset(stream):
    time.sleep(0.05)
    tell("reset")


def fill(out):
    out[:] = b"\\x01" * len(out)
    tell("launch")
'''


def description(*variants: dict[str, Any]) -> dict[str, Any]:
    common = {"role": "step", "title": "Fill", "cases": ["sizes"]}
    return {
        "title": "Fill",
        "question": "How fast?",
        "budget_s": 1,
        "metrics": {
            "host_time": {"unit": "s", "label": "host time"},
            "filled": {"unit": "B", "label": "bytes"},
        },
        "cases": {"sizes": {"n": [1, 2], "payload_bytes": "n * 8"}},
        "headline": {"n": 1},
        "variants": [common | variant for variant in variants],
    }


def write_study(folder: Path, *variants: dict[str, Any]) -> Study:
    folder.mkdir(exist_ok=True)
    (folder / "study.yaml").write_text(yaml.safe_dump(description(*variants), sort_keys=False))
    sources = {"workload": WORKLOAD, "wrong": WRONG, "trouble": TROUBLE, "refuses": REFUSES}
    for name in ("workload", *(str(v.get("source", v["name"])) for v in variants)):
        path = folder / f"{name}.py"
        if not path.exists():
            path.write_text(sources.get(name, FILL))
    return load_study(folder / "study.yaml")


@pytest.fixture(autouse=True)
def build_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Journals go to the test's own folder instead of the repository's."""
    monkeypatch.setattr(plans, "BUILD", tmp_path / "build")
    return tmp_path / "build"


@pytest.fixture
def where(tmp_path: Path) -> Target:
    return Target(tmp_path / "results", "test-box")


def host(folder: Path, limit_s: float = 60) -> Host:
    return Host(None, [], find_toolchain(), "sm_90", folder, limit_s)


def run(plan: Plan, folder: Path, limit_s: float = 60) -> list[str]:
    """Measure and publish; returns what is told of each variant."""
    run_rounds(plan, HERE, host(folder, limit_s))
    return list(publish(plan, HERE, host(folder, limit_s)))


def samples_at(where: Target, study: Study, variant: str) -> list[Sample]:
    return load_variant(where.root / where.machine / study.name / f"{variant}.csv").samples


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    modified = path.stat().st_mtime_ns
    path.write_text(text.replace(old, new))
    os.utime(path, ns=(modified, modified + 1))


def test_a_run_measures_every_cell_of_every_round(tmp_path: Path, where: Target) -> None:
    study = write_study(
        tmp_path / "whole",
        {"name": "one"},
        {"name": "wrong", "after": "one"},
        {"name": "on_gpu", "needs": ["gpu"]},
    )
    plan = Plan(study, study.variants, GRID, where)
    told = run(plan, tmp_path)

    one = samples_at(where, study, "one")
    assert Counter((s.case, s.metric, s.round, s.sample) for s in one) == Counter(
        [(f"n={n}", "host_time", r, i) for n in (1, 2) for r in range(3) for i in range(2)]
        + [(f"n={n}", "filled", r, 0) for n in (1, 2) for r in range(3)]
    )
    assert {(s.study, s.variant, s.status, s.verified, s.reason) for s in one} == {
        ("whole", "one", "ok", 1, "")
    }
    assert {(s.metric, s.unit) for s in one} == {("host_time", "s"), ("filled", "B")}
    assert {s.value for s in one if s.metric == "filled"} == {8.0, 16.0}
    assert all(s.value is not None and 0 < s.value < 0.05 for s in one if s.unit == "s")
    started = {s.round: s.started_at for s in one}
    assert started[0] < started[1] < started[2]
    assert len({s.run for s in one}) == 1

    # Wrong output: the cell fails in every round, with what differs; its other case goes on.
    wrong = samples_at(where, study, "wrong")
    failed = [s for s in wrong if s.case == "n=2"]
    assert [(s.status, s.value, s.verified, s.round) for s in failed] == [
        ("failed", None, 0, number) for number in range(3)
    ]
    assert {s.reason for s in failed} == {"byte 15: expected 1, got 165"}
    assert {s.status for s in wrong if s.case == "n=1"} == {"ok"}

    skipped = samples_at(where, study, "on_gpu")
    assert [(s.case, s.status, s.reason, s.value) for s in skipped] == [
        ("n=1", "skipped", "no GPU", None),
        ("n=2", "skipped", "no GPU", None),
    ]
    assert re.fullmatch(r"whole: \d+ s of measuring, budget 1 s", told.pop())
    assert told == [
        "whole/one: 18 samples",
        "whole/wrong: 12 samples; WRONG OUTPUT in 1 cases: n=2",
        "whole/on_gpu: skipped: no GPU",
    ]

    provenance = load_variant(where.root / "test-box" / "whole" / "one.csv").provenance
    assert provenance["source_sha256"] == fingerprint(study, study.variant("one"))
    assert provenance["run"] == one[0].run
    assert (provenance["rounds"], provenance["grid"]) == (3, "default")
    assert provenance["beside"] == ["wrong", "on_gpu"]
    assert provenance["start"] <= one[0].started_at <= provenance["end"]
    assert provenance["machine"]["gpu"] is None
    assert "no GPU" in provenance["captures"]["telemetry"]["status"]
    machine = json.loads((where.root / "test-box" / "machine.json").read_text())
    assert machine == provenance["machine"]
    assert not plan.journal.exists()
    assert pending(study, where, "default", HERE) == []


def test_a_study_that_cannot_run_here_is_rows_of_reasons(tmp_path: Path, where: Target) -> None:
    study = write_study(tmp_path / "gpu_only", {"name": "one", "needs": ["gpu"]})
    assert run(Plan(study, study.variants, GRID, where), tmp_path) == [
        "gpu_only/one: skipped: no GPU"
    ]
    assert pending(study, where, "default", HERE) == []
    # On a machine that has one now, the reason no longer stands.
    assert pending(study, where, "default", WITH_GPU) == list(study.variants)


def test_a_reset_comes_before_every_timed_launch_and_is_not_timed(
    tmp_path: Path, where: Target
) -> None:
    study = write_study(tmp_path / "resets", {"name": "one"})
    (study.folder / "one.py").write_text(WITH_RESET)
    run(Plan(study, study.variants, replace(GRID, rounds=1), where), tmp_path)
    samples = samples_at(where, study, "one")
    assert {s.status for s in samples} == {"ok"}
    assert all(s.value is not None and s.value < 0.05 for s in samples if s.metric == "host_time")
    told = (study.folder / "told").read_text().split()
    assert told[-4:] == ["reset", "launch"] * GRID.samples


@pytest.mark.parametrize(
    ("trouble", "limit_s", "told"),
    [
        ("raise", 60, "no such luck"),
        ("exit", 60, "its process ended with code 7"),
        ("kill", 60, f"its process ended with code {-signal.SIGKILL}"),
        ("hang", 4, "took longer than 4 s (round_limit_s)"),
    ],
)
def test_a_round_that_ends_badly_names_its_cell_and_costs_no_other_round(
    tmp_path: Path, where: Target, trouble: str, limit_s: float, told: str
) -> None:
    study = write_study(tmp_path / trouble, {"name": "trouble"})
    (study.folder / "trouble").write_text(f"3 {trouble}")
    plan = Plan(study, study.variants, GRID, where)
    with pytest.raises(HotpathError) as caught:
        run_rounds(plan, HERE, host(tmp_path, limit_s))
    said = str(caught.value)
    assert re.match(rf"{trouble}: round 3: trouble n=[12]: {re.escape(told)}; ", said)
    assert "finished rounds kept: 2" in said
    kept = [round_file(plan, number) for number in range(3)]
    assert [path.exists() for path in kept] == [True, True, False]
    before = [path.read_bytes() for path in kept[:2]]
    begun = run_id(plan)
    assert not (where.root / where.machine).exists()

    (study.folder / "trouble").unlink()
    run_rounds(plan, HERE, host(tmp_path))
    assert [path.read_bytes() for path in kept[:2]] == before
    assert (study.folder / "rounds").stat().st_size == 4
    list(publish(plan, HERE, host(tmp_path)))
    samples = samples_at(where, study, "trouble")
    assert {s.run for s in samples} == {begun}
    assert {s.round for s in samples} == {0, 1, 2}


def test_a_module_that_cannot_be_imported_is_told_with_its_cell(
    tmp_path: Path, where: Target
) -> None:
    study = write_study(tmp_path / "unimportable", {"name": "one"})
    (study.folder / "one.py").write_text("import no_such_module_here\n")
    with pytest.raises(HotpathError, match=r"round 1: one n=\d: No module named 'no_such_module"):
        run_rounds(Plan(study, study.variants, GRID, where), HERE, host(tmp_path))


def test_a_journal_of_other_code_or_another_grid_is_not_gone_on_with(
    tmp_path: Path, where: Target
) -> None:
    study = write_study(tmp_path / "digests", {"name": "one"}, {"name": "two"})
    plan = Plan(study, study.variants, GRID, where)
    others = [
        Plan(study, study.variants[:1], GRID, where),
        Plan(study, study.variants, replace(GRID, rounds=4), where),
        Plan(study, study.variants, GRID, replace(where, machine="other-box")),
    ]
    journals = {plan.journal, *(other.journal for other in others)}
    edit(study.folder / "two.py", '"""Fill at once."""', "# Fill at once.")
    assert plan.journal in journals
    edit(study.folder / "two.py", "len(out)", "(len(out))")
    assert plan.journal not in journals
    assert len(journals) == 4


def test_pending_is_decided_by_code_and_cases(tmp_path: Path, where: Target) -> None:
    variants: list[dict[str, Any]] = [{"name": "one"}, {"name": "two", "after": "one"}]
    study = write_study(tmp_path / "fresh", *variants)
    once = replace(GRID, rounds=1, samples=1)

    def names() -> list[str]:
        study = load_study(tmp_path / "fresh" / "study.yaml")
        return [variant.name for variant in pending(study, where, "default", HERE)]

    assert names() == ["one", "two"]
    run(Plan(study, study.variants, once, where), tmp_path)
    assert names() == []
    edit(study.folder / "two.py", '"""Fill at once."""', '"""Fill all."""\n# at once')
    assert names() == []
    edit(study.folder / "two.py", "def fill(out)", "def fill(out, *_)")
    assert names() == ["two"]
    edit(study.folder / "two.py", "def fill(out, *_)", "def fill(out)")
    assert names() == []
    edit(study.folder / "workload.py", "0xA5", "0xA6")
    assert names() == ["one", "two"]
    edit(study.folder / "workload.py", "0xA6", "0xA5")
    edit(study.folder / "study.yaml", "- 2\n", "- 2\n    - 3\n")
    assert names() == ["one", "two"]
    edit(study.folder / "study.yaml", "    - 3\n", "")
    assert names() == []
    assert pending(study, replace(where, machine="other-box"), "default", HERE) == [*study.variants]


def test_damaged_results_are_not_measured_over(tmp_path: Path, where: Target) -> None:
    study = write_study(tmp_path / "damaged", {"name": "one"})
    run(Plan(study, study.variants, replace(GRID, rounds=1), where), tmp_path)
    (where.root / "test-box" / "damaged" / "one.csv").write_text("")
    with pytest.raises(MalformedSamples, match=r"one\.csv: line 1"):
        pending(study, where, "default", HERE)


def test_what_is_pending_is_measured_beside_what_it_is_compared_with(tmp_path: Path) -> None:
    study = write_study(
        tmp_path / "beside",
        {"name": "one"},
        {"name": "two", "after": "one"},
        {"name": "three", "after": "two"},
        {"name": "limit", "role": "ceiling"},
    )
    found = with_companions(study, [study.variant("three")])
    assert [variant.name for variant in found] == ["two", "three", "limit"]
    assert with_companions(study, []) == []


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
    data = description({"name": "one", "cases": ["sizes", "few", "none"]})
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


def test_a_rounds_file_holds_what_was_measured(tmp_path: Path, where: Target) -> None:
    study = write_study(tmp_path / "files", {"name": "one"})
    plan = Plan(study, study.variants, replace(GRID, rounds=1), where)
    run_rounds(plan, HERE, host(tmp_path))
    assert {s.variant for s in read_samples(round_file(plan, 0))} == {"one"}
    before = round_file(plan, 0).stat().st_mtime_ns
    run_rounds(plan, HERE, host(tmp_path))
    assert round_file(plan, 0).stat().st_mtime_ns == before


class BusyGpu(Gpu):
    """A GPU on which two processes of others run."""

    def other_processes(self) -> list[int]:
        return [41, 42]


def test_gpu_in_use_is_refused_or_recorded() -> None:
    gpu = BusyGpu(None, "busy", "GPU-0", 3, "sm_90", "0000:00:00.0")
    with pytest.raises(HotpathError, match=r"GPU 3 is used by processes \[41, 42\]"):
        other_users(gpu, "refuse")
    assert other_users(gpu, "record") == [41, 42]
    assert other_users(None, "refuse") == []


def test_results_of_a_gpu_do_not_give_way_to_none_being_there(where: Target) -> None:
    folder = where.root / where.machine
    folder.mkdir(parents=True)
    refuse_other_machine(where, None)
    (folder / "machine.json").write_text('{"gpu": null}')
    refuse_other_machine(where, None)
    (folder / "machine.json").write_text('{"gpu": "Big GPU"}')
    refuse_other_machine(where, BusyGpu(None, "", "", 0, "sm_90", ""))
    with pytest.raises(HotpathError, match=r"measured with a GPU \(Big GPU\), here is none"):
        refuse_other_machine(where, None)


def test_a_larger_grid_asks_for_what_a_smaller_one_measured(tmp_path: Path, where: Target) -> None:
    study = write_study(tmp_path / "larger", {"name": "one"})
    run(Plan(study, study.variants, GRID, where), tmp_path)
    assert pending(study, where, "default", HERE) == []
    assert pending(study, where, "full", HERE) == list(study.variants)


def test_the_smoke_grid_keeps_to_its_own_folder() -> None:
    smoke = target(load_config({"grid": "smoke"}), None)
    assert "smoke" in smoke.root.parts
    assert "smoke" not in target(load_config(), None).root.parts


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
    operation = SimpleNamespace(launch=lambda stream: time.sleep(0.002), reset=None)
    (times,) = host_times(cast(Operation, operation), 0, lambda: time.sleep(0.02), 1)
    assert 0.002 <= times["submit_time"] < 0.02 <= times["host_time"]


def test_a_variant_without_a_case_in_the_grid_is_left_alone(tmp_path: Path, where: Target) -> None:
    study = write_study(tmp_path / "grids", {"name": "one"}, {"name": "two"})
    one, two = study.variants
    only_full = replace(two, cases=tuple(replace(case, grid="full") for case in two.cases))
    study = replace(study, variants=(one, only_full))
    assert pending(study, where, "default", HERE) == [one]
    run(Plan(study, study.variants, GRID, where), study.folder)
    assert samples_at(where, study, "one")
    assert not (where.root / where.machine / study.name / "two.csv").exists()


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


@pytest.mark.parametrize("host_work", [False, True])
def test_inputs_leave_the_caches_after_the_check_and_before_what_the_cpu_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host_work: bool
) -> None:
    study = write_study(tmp_path / "cached", {"name": "one", "host_work": host_work})
    bench = Bench(replace(job(study, 0), samples=2), None)
    operation = Recorded()
    monkeypatch.setattr(bench, "_bind", lambda cell: operation)
    bench._is_warm = True
    bench.measure(Cell(study.variants[0], study.variants[0].cases[0]))
    timed = ["settle", "launch"] if host_work else ["launch"]
    untimed = ["poison", "launch", "check", "settle", "launch"]
    assert operation.events == [*untimed, *timed, *timed]
