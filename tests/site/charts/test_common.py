"""The charts of every study, from synthetic results."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from analysis.site.charts import study_charts
from analysis.site.charts.steps import NO_KEY, varying_keys
from analysis.site.charts.timeline import timeline_chart, timeline_events
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import discover
from tests.captured import captured_root
from tests.roots import make_inputs, make_root, rows_without_value
from tests.site.charts.conftest import Charts
from tests.synthetic import add_run, provenance_of, write_machine


def test_the_steps_show_every_variant_in_words(two_machines: Inputs, charts: Charts) -> None:
    study = two_machines.studies["copy"]
    steps = charts["copy"]["steps"]
    assert set(steps.table["variant"]) == set(study.variant_names)
    titles = {variant.name: variant.title for variant in study.variants}
    assert (steps.table["name"] == steps.table["variant"].map(titles)).all()
    starts = {select.label: select.start for select in steps.selects}
    assert starts == {"batch": 128, "rows": 2048, "draw": "repeated"}
    published = steps.table[steps.table["state"] == "published"]
    assert published["rate"].isna().all() and published["published"].notna().all()
    assert set(charts["copy"]) >= {"steps", "cases", "dots"}, "a study may add charts"


def test_variant_without_a_run_is_drawn_only_if_published(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    study = discover(root)["copy"]
    published, failed, *others = study.variants
    unpublished = study.variant("library")
    measured = [variant for variant in others if variant != unpublished]
    write_machine(root / "results", "box", study, variants=measured)
    for variant, status in ((published, "skipped"), (failed, "failed"), (unpublished, "skipped")):
        rows = rows_without_value(study, variant, status, "needs 4 GPUs")
        provenance = provenance_of(study, variant)
        add_run(root / "results", "box", "copy", variant.name, rows, provenance)
    facts = StudyFacts(make_inputs(root), study)
    assert set(facts.unreached) == {published.name, unpublished.name}
    chart = study_charts(facts)["steps"]
    assert chart is not None
    drawn = set(chart.table["variant"])
    assert drawn >= {variant.name for variant in (published, failed, *measured)}
    assert unpublished.name not in drawn


def test_cases_run_along_the_number_with_most_values(charts: Charts) -> None:
    document = charts["strides"]["cases"].drawing.to_dict(validate=False)
    along = {layer["encoding"]["x"].get("field") for layer in document["layer"]}
    assert along == {"case_row_bytes", None}, "names of lines are at the right end"
    # The headline has no `rows`; cases with `rows` are another choice.
    rows = charts["strides"]["cases"].table["case_rows"]
    assert NO_KEY in set(rows) and 4096 in set(rows)
    points = pd.DataFrame({"variant": ["one"] * 2, "case_rows": [1, 1], "case_pause": [50, None]})
    assert varying_keys(points) == ["case_pause"]


def test_the_timeline_has_a_row_a_lane_and_shows_a_step_first(tmp_path: Path) -> None:
    root = captured_root(tmp_path)
    facts = StudyFacts(make_inputs(root), discover(root)["copy"])
    events = timeline_events(facts)
    assert set(events["lane"]) == {"host", "stream 7"}
    assert set(events.loc[events["kind"] == "kernel", "name"]) == {"copy"}
    assert events.groupby("variant")["end_us"].max().tolist() == pytest.approx([200_002] * 3)
    assert set(events["state"]) == {"captured", "stale"}
    chart = timeline_chart(facts)
    assert chart is not None and [select.label for select in chart.selects] == ["variant"]
