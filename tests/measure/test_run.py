"""Runs of host code: all rounds, rounds that fail or are disturbed, and what is published."""

import re
import shutil
import signal
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from analysis.base.errors import HotpathError
from analysis.base.gpu import Gpu
from analysis.measure import run as runs
from analysis.measure.journal import Journal, publish
from analysis.measure.plan import Place, Plan, pending
from analysis.measure.round import RoundJob
from analysis.measure.run import run_rounds
from analysis.results.disturbance import disturbances
from analysis.results.store.keys import Disturbance, Look
from analysis.results.store.runs import described
from analysis.study import Study
from analysis.study.claims import Claim
from analysis.study.claims.claim import Comparison
from analysis.study.source import fingerprint
from tests.editing import edit_json, replace_in
from tests.measure.studies import (
    GPU,
    GRID,
    QUIET,
    host,
    measure,
    only_run,
    plan_of,
    run,
    samples_at,
    started_rounds,
    write_study,
)
from tests.synthetic import assert_measured_once


def test_a_run_measures_every_cell_of_every_round(
    tmp_path: Path, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("one", "wrong", "refuses")
    on_gpu = {"name": "on_gpu", "needs": ["gpu"]}
    study = write_study(tmp_path / "whole", *({"name": name} for name in names), on_gpu)
    plan = plan_of(replace(study, budget_s=80), place)
    run_rounds(journal := Journal(plan), host(), "study 1 of 2, ", later_s=215.0)
    first, second, _ = capsys.readouterr().out.splitlines()
    assert first == "whole: study 1 of 2, round 1 of 3, about 5 min left"
    assert second.endswith("round 2 of 3, about 4 min left")
    assert list(publish(journal, host())) == [
        "whole: 3 variants measured in 4 cells",
        "whole/on_gpu: skipped: no GPU",
        "whole/refuses: skipped: too large for this machine",
    ]
    assert not plan.journal.exists()
    assert pending(study, place, "default") == []
    one = samples_at(place, study, "one")
    assert Counter((s.case, s.metric, s.unit, s.round, s.sample) for s in one) == Counter(
        [(f"n={n}", "host_time", "s", r, i) for n in (1, 2) for r in range(3) for i in range(2)]
        + [(f"n={n}", "filled", "B", r, 0) for n in (1, 2) for r in range(3)]
    )
    assert {s.value for s in one if s.metric == "filled"} == {8.0, 16.0}
    assert all(s.value is not None and 0 < s.value < 0.05 for s in one if s.unit == "s")
    # A wrong output fails its cell in every round, with the difference; the other case passes.
    found = only_run(place, study)
    why = {"wrong": "byte 15: expected 1, got 165", "refuses": "too large for this machine"}
    bad = [(row.variant, row.case, row.reason) for row in found.rows if row.status != "ok"]
    assert Counter(bad) == {
        **{(name, "n=2", reason): 3 for name, reason in why.items()},
        **{("on_gpu", f"n={n}", "no GPU"): 1 for n in (1, 2)},
    }
    about = found.about
    assert about.variants["one"].source_sha256 == fingerprint(study, study.variant("one"))
    assert about.variants["on_gpu"].unmet == "no GPU"
    assert (about.rounds, about.grid, about.asked, about.begun) == (3, "default", [], one[0].run)
    assert about.start <= one[0].started_at <= about.end
    assert about.telemetry["one"] == "not captured: no GPU"
    assert len(about.conditions) == 4  # before every round, and after the last
    stages = about.stages_s
    assert stages and stages.start > 0 and 0 <= stages.recorded <= stages.timing


EXIT = "import os, time; os.fork() or time.sleep(60); os._exit(7)"
"""Leaves a child that holds what it had open."""
HANG = "import signal; signal.pause()"
CRASH = "import ctypes; ctypes.string_at(0)"


@pytest.mark.parametrize(
    ("trouble", "reason", "stack"),
    [
        ("raise ValueError('no such luck')", "no such luck", "ValueError"),
        (EXIT, "its process ended with code 7", ""),
        (CRASH, f"its process ended with code {-signal.SIGSEGV}", "Segmentation fault"),
        (HANG, "took longer than 2 s (round_limit_s)", r"round\.py\", line \d+ in measure"),
    ],
)
def test_a_failed_round_names_its_cell_and_keeps_the_other_rounds(
    tmp_path: Path,
    place: Place,
    capfd: pytest.CaptureFixture[str],
    trouble: str,
    reason: str,
    stack: str,
) -> None:
    """The same command goes on. A process that hangs or crashes leaves its stacks."""
    study = write_study(tmp_path / "bad", {"name": "trouble"})
    (study.folder / "trouble").write_text(f"3 {trouble}")
    journal = Journal(plan := plan_of(study, place))
    began = time.monotonic()
    with pytest.raises(HotpathError) as caught:
        run_rounds(journal, host(limit_s=2 if trouble == HANG else 60))
    assert time.monotonic() - began < 55, "it waits for the process only"
    said = rf"bad: round 3: cell [1-4]: trouble n=[12]: {re.escape(reason)}; finished rounds "
    assert re.match(said, str(caught.value))
    error = capfd.readouterr().err
    assert re.search(stack, error)
    assert not stack or re.search(r"trouble\.py\", line \d+,? in fill", error)
    kept = [journal.file_of(number) for number in range(3)]
    assert [path.exists() for path in kept] == [True, True, False]
    before = [path.read_bytes() for path in kept[:2]]
    assert not place.folder.exists()

    (study.folder / "trouble").unlink()
    resumed = measure(plan)
    assert [path.read_bytes() for path in kept[:2]] == before
    assert started_rounds(study) == 4
    assert resumed.begun == journal.begun
    list(publish(resumed, host()))
    assert only_run(place, study).about.run == journal.begun.run


def test_a_crash_of_a_shipped_operator_costs_its_cell_only(tmp_path: Path, place: Place) -> None:
    study = write_study(tmp_path / "peers", {"name": "trouble"}, {"name": "one"})
    (study.folder / "trouble").write_text(f"1 {CRASH}")
    trouble, one = study.variants
    study = replace(study, variants=(replace(trouble, role="shipped"), one))
    run(plan_of(study, place))
    failed = [row for row in only_run(place, study).rows if row.status == "failed"]
    assert {(row.variant, row.reason) for row in failed} == {
        ("trouble", f"its process ended with code {-signal.SIGSEGV}")
    }
    assert [row.round for row in failed] == [0, 1, 2]


def test_a_shipped_operator_is_left_out_after_two_failures(tmp_path: Path, place: Place) -> None:
    sizes = {"sizes": {"n": [1, 2, 3, 4]}}
    study = write_study(tmp_path / "peers", {"name": "trouble"}, {"name": "one"}, **sizes)
    (study.folder / "trouble").write_text("every raise ValueError('no such luck')")
    trouble, one = study.variants
    study = replace(study, variants=(replace(trouble, role="shipped"), one))
    run(plan_of(study, place))
    failed = [row for row in only_run(place, study).rows if row.status == "failed"]
    assert {row.variant for row in failed} == {"trouble"}
    assert len(failed) == 12
    assert started_rounds(study) == 2, "after two cells, no round loads it"


def test_a_round_with_an_invalid_value_is_not_kept(tmp_path: Path, place: Place) -> None:
    study = write_study(tmp_path / "nan", {"name": "one"})
    replace_in(study.folder / "workload.py", "[len(self.out)]", "[float('nan')]")
    journal = Journal(plan_of(study, place))
    with pytest.raises(HotpathError, match=r"line 2: filled: expected 0 or numbers"):
        run_rounds(journal, host())
    assert journal.to_measure() == [0, 1, 2]


def changed(**values: float) -> Look:
    return QUIET.model_copy(update=values)


def test_signs_of_a_disturbed_round() -> None:
    seldom = changed(throttled_periods=4)
    for before, after, others, why in (
        (QUIET, changed(busy_share=0.05), {}, []),
        (QUIET, changed(busy_share=0.1), {}, ["others kept 1.6 cores busy"]),
        (QUIET, changed(steal_s=2.5), {}, []),
        (QUIET, changed(steal_s=4.2), {}, ["the hypervisor took 2.0% of the cores' time"]),
        (QUIET, seldom, {}, []),  # of an unknown number before
        (seldom, changed(throttled_periods=7), {}, ["the CPU quota stopped this process in 3 per"]),
        (QUIET, QUIET, {"newcomers": (7, 3)}, ["processes [3, 7] came to the GPU"]),
        (QUIET, QUIET, {"throttle": {"", "sw_power_cap"}}, []),
        (QUIET, QUIET, {"throttle": {"hw_slowdown"}}, ["the GPU lowered its clocks: hw_slowdown"]),
    ):
        found = [*disturbances(before, after, 10.0, 16, **others)]
        assert [text[:43] for text in found] == [text[:43] for text in why]


@pytest.mark.parametrize(("busy", "kept"), [([1], [2]), (range(9), [0, 1, 2])])
def test_fewer_than_half_of_the_rounds_are_repeated_if_disturbed(
    tmp_path: Path,
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    busy: Sequence[int],
    kept: list[int],
) -> None:
    """A busy host between two rounds disturbs both."""
    looks = iter([QUIET, *(changed(busy_share=float(n in busy)) for n in range(9))])
    monkeypatch.setattr(runs, "conditions", lambda: next(looks))
    monkeypatch.setattr("psutil.cpu_count", lambda: 8)
    study = write_study(tmp_path / "noisy", {"name": "one"})
    run(plan_of(study, place))
    about = only_run(place, study).about
    (repeated,) = about.repeated
    assert repeated.round == busy[0] and "others kept 8.0 cores busy" in repeated.why
    assert [entry.round for entry in about.disturbed] == kept
    started = {s.round: s.started_at for s in samples_at(place, study, "one")}
    assert max(started, key=lambda number: started[number]) == repeated.round


def test_new_processes_on_the_gpu_and_their_cost_are_known(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids: list[int | None] = []
    start = BaseProcess.start

    def noted(process: BaseProcess) -> None:
        start(process)
        pids.append(process.pid)

    monkeypatch.setattr(BaseProcess, "start", noted)
    monkeypatch.setattr(Gpu, "other_processes", lambda self: [4, 5, *pids])
    joules = iter([100.0, 2000.0, 130.0, 2005.0])  # of both GPUs, before and after
    monkeypatch.setattr(Gpu, "energy_j", lambda self: next(joules))
    monkeypatch.setattr(runs, "recording", lambda gpus: nullcontext([]))
    job = RoundJob
    monkeypatch.setattr(runs, "RoundJob", lambda **asked: job(**{**asked, "gpu_keys": ()}))
    study = write_study(tmp_path / "noisy", {"name": "one"})
    journal = Journal(plan_of(study, replace(place, gpus=[GPU, GPU]), rounds=1))
    monkeypatch.setattr(Place, "in_use", lambda self, variants: (GPU, GPU))
    run_rounds(journal, host(others=[4]))
    record = journal.records[0]
    assert (record.energy_j, record.why) == (35.0, ["processes [5] came to the GPU"])


@pytest.fixture
def finished(build_folder: Path, study: Study, place: Place) -> Plan:
    """A plan all of whose rounds are in its journal."""
    return measure(plan_of(study, place)).plan


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("trouble,n=1,1,", "trouble,n=1,0,0,"),
        ("trouble,n=1", "t\0"),
        ('"copy_bytes_per_s"', '"copy"'),
        ('"telemetry":"', '"telemetry":"more,'),
    ],
)
def test_damage_costs_a_round_and_is_a_line(
    finished: Plan, capsys: pytest.CaptureFixture[str], old: str, new: str
) -> None:
    replace_in(finished.journal / "round-01.json", old, new)
    (finished.journal / "round.nvbench.json").touch()
    rounds = started_rounds(finished.study)
    capsys.readouterr()
    run(finished)
    assert started_rounds(finished.study) == rounds + 1
    assert capsys.readouterr().out.count("a round is dropped: ") == 1
    assert_measured_once(finished.results, finished.study.variant_names, GRID.rounds)


def test_a_resumed_run_has_the_name_the_commit_and_the_bounds_of_its_first_round(
    study: Study, place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A disturbed round is repeated by the same command, even if its first try was stopped. A clock
    that is set back costs nothing."""
    claims = []
    for digit in "01":
        test = Comparison(kind="speedup", of="one", over="trouble", case="n=1", at_least=1.0)
        claims.append(claim := Claim(id="it", says="So.", test=test))
        claim.tests[0]._digest = digit * 12
    first, later = (plan_of(replace(study, claims=(claim,)), place) for claim in claims)
    begun = measure(first).begun
    edit_json(first.journal / "round-01.json", lambda record: record.update(why=["noise"]))
    earlier = {"end": "2026-01-01T00:00:00Z"}
    edit_json(first.journal / "round-02.json", lambda record: record.update(earlier))
    assert Journal(later).to_measure() == [1]
    monkeypatch.setattr("analysis.measure.journal.commit_of", None)
    run(later)
    printed = capsys.readouterr().out
    assert "dropped" not in printed and "left; it is repeated: noise" in printed
    about = only_run(place, study).about
    assert about.bounds == {"it": ["0" * 12]}
    assert about.repeated == [Disturbance(round=1, why=["noise"])]
    assert (about.run, about.commit) == (begun.run, begun.commit)


def test_rounds_of_other_code_are_dropped(
    finished: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another host and another grid have a journal of their own."""
    elsewhere = replace(finished, place=replace(finished.place, host="12345678"))
    for other in (elsewhere, replace(finished, grid=replace(GRID, name="full"))):
        assert Journal(other).to_measure() == [0, 1, 2]
    source = finished.study.folder / "one.py"
    replace_in(source, '"""Fill at once."""', "# F.")
    assert Journal(replace(finished)).to_measure() == []
    assert "dropped" not in capsys.readouterr().out
    replace_in(source, "len(out)", "1 * len(out)")
    assert Journal(replace(finished)).to_measure() == [0, 1, 2]
    assert "round-02.json: the code or settings have changed" in capsys.readouterr().out
    assert not finished.journal.exists()


def test_a_published_run_is_over(finished: Plan) -> None:
    """The rest of its journal, as a kill may leave it, is of no use."""
    kept = shutil.copytree(finished.journal, finished.journal.with_name("kept"))
    run(finished)
    shutil.move(kept, finished.journal)
    again = Journal(finished)
    assert again.to_measure() == [0, 1, 2]
    assert [again.begun.run] != [path.stem for path in described(finished.results)]
