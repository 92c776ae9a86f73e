"""Captures: their states and reasons, and counters of several kernels."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from analysis.base.errors import HotpathError
from analysis.base.records import write_records
from analysis.results.store.records import Counter
from analysis.site.facts.captures import CAPTURED, UNTRIED, UNWANTED, Capture
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import discover
from tests.captured import captured_root
from tests.roots import make_inputs

TIME, REGISTERS = "gpu__time_duration.sum", "launch__registers_per_thread"


def test_counters_of_several_kernels_are_summed_if_possible(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    values = {("short", TIME): 10.0, ("short", REGISTERS): 99.0}
    values |= {("long", TIME): 30.0, ("long", REGISTERS): 16.0}
    rows = [Counter("one", "n=1", *key, "", value) for key, value in values.items()]
    others = [replace(row, variant="other", value=row.value + 1) for row in rows]
    write_records(path, Counter, [*rows, *others])
    counters = partial(Capture, CAPTURED, "", path=path, variant="one")
    assert counters().counters == {TIME: 40.0, REGISTERS: 16.0}
    path.write_text("case,kernel\nn=1,k\n")
    with pytest.raises(HotpathError, match=r"v\.csv: "):
        _ = counters().counters


def test_a_capture_has_its_state_and_a_missing_one_its_reason(tmp_path: Path) -> None:
    root = captured_root(tmp_path)
    facts = StudyFacts(make_inputs(root), discover(root)["copy"])
    steps = facts.study.with_role("step")
    captures = [facts.capture("box", step, "counters") for step in steps[:5]]
    states = ["captured", "captured", "stale", "not captured", "not captured"]
    assert [one.state for one in captures] == states
    assert captures[0].counters and captures[3].reason == "counters need <permission>"
    assert captures[4].reason == UNTRIED
    unwanted = replace(steps[4], captures=("timeline",))
    assert facts.capture("box", unwanted, "counters").reason == UNWANTED
    assert facts.capture("box", steps[0], "timeline").events["start"].min() == 0
