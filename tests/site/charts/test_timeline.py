"""The chart of a timeline: one row per lane, a step first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis.site.charts import study_charts
from analysis.site.charts.timeline import timeline_chart, timeline_events
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import discover
from tests.captured import captured_root
from tests.roots import make_inputs, make_root
from tests.synthetic import COPY, write_machine


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return captured_root(tmp_path)


def test_the_timeline_has_a_row_a_lane_and_shows_a_step_first(root: Path) -> None:
    facts = StudyFacts(make_inputs(root), discover(root)["copy"])
    events = timeline_events(facts)
    assert set(events["lane"]) == {"host", "stream 7"}
    assert set(events.loc[events["kind"] == "kernel", "name"]) == {"copy"}
    assert events.groupby("variant")["end_us"].max().tolist() == pytest.approx([200_002] * 3)
    assert set(events["state"]) == {"captured", "stale"}
    chart: Any = study_charts(facts)["timeline"]
    params = {param["name"]: param for param in chart.to_dict()["params"]}
    assert params["machine_shown"]["bind"]["options"] == ["box"]
    assert params["variant_shown"]["value"] in set(events["variant"])
    windows = [10, 100, 1_000, 10_000, 100_000]
    options = [None, *windows, *(-window for window in windows)]
    assert params["window_us"]["bind"]["options"] == options


def test_no_timelines_no_chart(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    write_machine(root / "results", "box", COPY, variants=COPY.with_role("step"))
    facts = StudyFacts(make_inputs(root), COPY)
    assert timeline_chart(facts) is None
