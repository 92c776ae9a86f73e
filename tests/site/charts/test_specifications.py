"""Chart specifications: valid Vega-Lite, complete, and without fixed colours."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import pytest

from analysis.site.charts import study_charts
from analysis.site.charts.theme import Chart, finish, palettes, panels, select
from analysis.site.charts.writing import write_chart
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import discover
from tests.roots import make_inputs, make_root, rows_without_value
from tests.site.charts.conftest import Charts
from tests.synthetic import add_run, provenance_of, write_machine


def drawn_names(chart: Chart, folder: Path, name: str) -> set[str]:
    write_chart(chart, folder, name, "charts")
    return set(re.findall(r'"(\w+)"', (folder / f"{name}.json").read_text()))


@pytest.mark.parametrize("name", ["steps", "cases"])
def test_common_charts_show_every_variant(
    two_machines: Inputs, charts: Charts, name: str, tmp_path: Path
) -> None:
    names = set(two_machines.studies["copy"].variant_names)
    assert names <= drawn_names(charts["copy"][name], tmp_path, name)


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
    drawn = drawn_names(chart, tmp_path, "steps")
    assert drawn >= {variant.name for variant in (published, failed, *measured)}
    assert unpublished.name not in drawn


def test_written_charts_are_valid_and_refer_to_their_data(charts: Charts, tmp_path: Path) -> None:
    for name, of_study in charts.items():
        for chart_name, chart in of_study.items():
            data = write_chart(chart, tmp_path / name, chart_name, f"charts/{name}").data
            spec = json.loads((tmp_path / name / f"{chart_name}.json").read_text())
            kind: Any = alt.FacetChart if "facet" in spec else alt.Chart
            kind.validate(spec)
            assert spec["data"]["url"] == f"charts/{name}/{chart_name}.csv"
            assert spec["description"]
            written = pd.read_csv(tmp_path / name / f"{chart_name}.csv")
            assert len(written) == len(data)
            assert set(spec["data"]["format"]["parse"]) == set(written.columns)


def test_parameters_of_a_chart_come_after_those_of_its_views() -> None:
    """The same order as by Altair's methods, which copy the whole chart at every step."""
    table = pd.DataFrame({"machine": ["box"], "x": [1]})
    picked = alt.selection_point(name="picked", fields=["x"])
    layers = alt.layer(alt.Chart().mark_point().encode(x="x:Q").add_params(picked))
    kinds = select("kind", "kind", ["a", "b"], "a")
    finished = finish(panels(layers, table, kinds), "Points.", 80, 60).to_dict()
    expected = (
        layers.facet(facet=alt.Facet("machine:N", title=None), columns=1, data=table)
        .resolve_axis(x="independent")
        .add_params(select("machine_shown", "machine", [None, "box"], None), kinds)
        .transform_filter("machine_shown === null || datum.machine === machine_shown")
        .add_params(*map(alt.param, ("column", "compact", "legend_columns")))
        .to_dict()
    )
    names = [[one["name"] for one in chart["params"]] for chart in (finished, expected)]
    assert names[0][:3] == ["picked", "machine_shown", "kind"] == names[1][:3]
    assert len(names[0]) == len(names[1]) == 6
    parts = ("params", "description", "usermeta")
    assert {key: one for key, one in finished.items() if key not in parts} == {
        key: one for key, one in expected.items() if key not in parts
    }


def test_a_study_may_add_charts_of_its_own(charts: Charts) -> None:
    assert set(charts["copy"]) >= {"steps", "cases", "dots"}


def test_selects_start_at_the_headline_and_all_machines(
    charts: Charts,
) -> None:
    spec = charts["copy"]["steps"].to_dict()
    selects = {param["name"]: param for param in spec["params"] if "bind" in param}
    assert {name: param["value"] for name, param in selects.items()} == {
        "machine_shown": None,
        "case_batch_shown": 128,
        "case_rows_shown": 2048,
        "case_draw_shown": "repeated",
        "clock_shown": None,
    }
    assert selects["machine_shown"]["bind"]["options"] == [None, "box", "other-box"]


def test_agreement_compares_repeats_of_one_program_only(
    two_machines: Inputs, charts: Charts, tmp_path: Path
) -> None:
    table = two_machines.tables["repeats"]
    assert set(table["study"]) == {"calls"}
    assert set(zip(table["variant"], table["against"], strict=True)) == {("again", "python")}
    assert "compiled" not in drawn_names(charts["calls"]["agreement"], tmp_path, "agreement")


def test_charts_name_no_colour(charts: Charts) -> None:
    for of_study in charts.values():
        for chart in of_study.values():
            spec = chart.to_dict()
            spec.pop("config", None), spec.pop("datasets", None)
            assert not re.search(r"#[0-9a-f]{6}\b", json.dumps(spec))


@pytest.mark.parametrize(("palette", "page"), [("default", "#ffffff"), ("slate", "#1e2129")])
def test_colours_stand_out_from_the_page(palette: str, page: str) -> None:
    category = palettes()[palette]["range"]["category"]
    assert all(contrast(colour, page) >= 3 for colour in category)


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two #rrggbb colours as WCAG 2 defines it."""

    def luminance(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)
