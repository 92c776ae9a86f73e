"""Chart specifications: valid Vega-Lite, complete, and of the colours of no palette."""

from __future__ import annotations

import json
import re
from pathlib import Path

import altair as alt
import pandas as pd
import pytest
import vl_convert

from analysis.charts import study_charts
from analysis.charts.theme import COLOURS, GREY, STEP_COLOUR, Chart, configurations
from analysis.charts.writing import write_chart
from analysis.facts.inputs import Inputs
from analysis.facts.study_facts import StudyFacts
from analysis.study import discover
from tests.report.roots import STUDY, make_inputs, make_root
from tests.synthetic import write_machine

Charts = dict[str, dict[str, Chart]]

EXTRA = '''
"""A chart of this study's own."""

import altair as alt


def charts(facts):
    """One dot a row."""
    dots = alt.Chart(facts.points, description="Every time.").mark_point()
    return {"dots": dots.encode(x="seconds", y="variant").add_params(alt.param(name="p", value=1))}
'''


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    root = make_root(tmp_path_factory.mktemp("charts"))
    (root / "kernels" / STUDY / "charts.py").write_text(EXTRA)
    for study in discover(root).values():
        for machine in ("box", "other-box"):
            write_machine(root / "results", machine, study)
    return make_inputs(root)


@pytest.fixture(scope="module")
def charts(inputs: Inputs) -> Charts:
    """Charts by name, by study."""
    return {name: study_charts(StudyFacts(inputs, study)) for name, study in inputs.studies.items()}


def drawn_names(chart: Chart, folder: Path, name: str) -> set[str]:
    write_chart(chart, folder, name, "charts")
    return set(re.findall(r'"(\w+)"', (folder / f"{name}.json").read_text()))


@pytest.mark.parametrize("name", ["steps", "cases"])
def test_common_charts_show_every_variant(
    inputs: Inputs, charts: Charts, name: str, tmp_path: Path
) -> None:
    names = set(inputs.studies[STUDY].variant_names)
    assert names <= drawn_names(charts[STUDY][name], tmp_path, name)


def test_written_charts_are_valid_and_refer_to_their_data(charts: Charts, tmp_path: Path) -> None:
    for name, own in charts.items():
        for chart_name, chart in own.items():
            data = write_chart(chart, tmp_path / name, chart_name, f"charts/{name}")
            spec = json.loads((tmp_path / name / f"{chart_name}.json").read_text())
            alt.Chart.from_dict(spec)
            assert spec["data"]["url"] == f"charts/{name}/{chart_name}.csv"
            assert spec["description"]
            written = pd.read_csv(tmp_path / name / f"{chart_name}.csv")
            assert len(written) == len(data)
            assert set(spec["data"]["format"]["parse"]) == set(written.columns)


def test_a_study_may_add_charts_of_its_own(charts: Charts) -> None:
    assert set(charts[STUDY]) >= {"steps", "cases", "dots"}


def test_selects_start_at_the_headline_and_all_machines(
    charts: Charts,
) -> None:
    spec = charts[STUDY]["steps"].to_dict()
    selects = {param["name"]: param for param in spec["params"] if "bind" in param}
    assert {name: param["value"] for name, param in selects.items()} == {
        "machine_shown": None,
        "case_bs_shown": 128,
        "case_topk_shown": 2048,
        "case_draw_shown": "with_replacement",
        "clock_shown": None,
    }
    assert selects["machine_shown"]["bind"]["options"] == [None, "box", "other-box"]


@pytest.mark.parametrize(
    ("study", "along"),
    [
        ("h2d_gather", "payload_bytes"),
        ("link_calibration", "case_row_bytes"),
        ("storage_fill", "payload_bytes"),
    ],
)
def test_lines_run_along_the_key_with_most_cases_beside_the_headline(
    charts: Charts, study: str, along: str
) -> None:
    spec = charts[study]["cases"].to_dict()
    layers = [mark for role in spec["spec"]["layer"] for mark in role["layer"]]
    assert {layer["encoding"]["x"]["field"] for layer in layers} == {along}
    assert {layer["encoding"]["x"]["scale"]["type"] for layer in layers} == {"log"}


def test_a_case_without_a_key_that_others_have_is_another_choice(charts: Charts) -> None:
    # The headline has no `rows`; beside it, the cases that have are another line.
    chart = charts["link_calibration"]["cases"]
    spec = chart.to_dict()
    selects = {param["name"]: param for param in spec["params"] if "bind" in param}
    rows = selects["case_rows_shown"]
    assert rows["value"] is None
    assert rows["bind"]["options"] == [None, 512, 1024, 2048, 4096]
    assert rows["bind"]["labels"][0] == "none"
    assert drawn_points(spec) == 2 * chart.data["case_row_bytes"].nunique()
    rows["value"] = 4096
    assert drawn_points(spec) == 2 * 2


def test_what_has_no_place_along_the_axis_is_in_no_legend(charts: Charts) -> None:
    spec = charts["link_calibration"]["cases"].to_dict()
    assert "copy_engine" not in json.dumps(spec)
    assert "case_bytes_shown" not in json.dumps(spec["params"])


@pytest.mark.parametrize(
    ("study", "ticks"),
    [
        # Of 4093 and 4096 the headline's.
        ("unpack", [64, 256, 1024, 4096, 65536]),
        # At the headline, the bytes of most variants: two have rows of another size.
        ("h2d_gather", [tokens * 2048 * 656 for tokens in (1, 16, 64, 128)]),
    ],
)
def test_the_headline_has_a_tick_of_its_own(charts: Charts, study: str, ticks: list[int]) -> None:
    spec = charts[study]["cases"].to_dict()
    assert spec["spec"]["layer"][0]["layer"][0]["encoding"]["x"]["axis"]["values"] == ticks


@pytest.mark.parametrize("study", ["unpack", "h2d_gather"])
def test_others_differ_in_colour_or_shape_and_are_no_grey(charts: Charts, study: str) -> None:
    others = charts[study]["cases"].to_dict()["spec"]["layer"][1]
    encoding = others["layer"][2]["encoding"]
    assert encoding["fill"]["legend"] == encoding["shape"]["legend"]
    domain = encoding["fill"]["scale"]["domain"]
    assert encoding["shape"]["scale"]["domain"] == domain
    shapes = encoding["shape"]["scale"]["range"]
    looks = {
        name: (place % COLOURS, shapes[place])
        for place, name in enumerate(domain)
        if name in encoding["fill"]["legend"]["values"]
    }
    assert len(set(looks.values())) == len(looks) > COLOURS - 2
    assert {colour for colour, _ in looks.values()}.isdisjoint({STEP_COLOUR, GREY})


def drawn_points(spec: dict[str, object]) -> int:
    svg = vl_convert.vegalite_to_svg(spec)
    return len(re.findall('aria-roledescription="point"', svg))


def test_points_show_the_time_each_variant_is_compared_by(inputs: Inputs) -> None:
    facts = StudyFacts(inputs, inputs.studies[STUDY])
    points = facts.points
    shown = points[(points["is_default"] == 1) & (points["state"] == "measured")]
    metrics = shown.groupby("variant")["metric"].agg(set)
    for variant in facts.study.variants:
        assert metrics[variant.name] == {"host_time" if variant.host_work else "gpu_time"}
    rate = shown["payload_bytes"] / shown["seconds"].astype(float) / 1e9
    assert shown["rate"].astype(float).to_numpy() == pytest.approx(rate.to_numpy(dtype=float))
    assert (shown["rate_low"] <= shown["rate"]).all() and (
        shown["rate"] <= shown["rate_high"]
    ).all()


def test_published_figures_stand_beside_every_machine(inputs: Inputs) -> None:
    points = StudyFacts(inputs, inputs.studies[STUDY]).points
    published = points[points["state"] == "published"]
    assert published["machine"].value_counts().nunique() == 1
    assert set(published["machine"]) == {"box", "other-box"}


def test_agreement_compares_repeats_of_one_program_only(
    inputs: Inputs, charts: Charts, tmp_path: Path
) -> None:
    table = inputs.repeats
    assert set(table["study"]) == {"method"}
    assert set(zip(table["variant"], table["against"], strict=True)) == {("copy_b", "copy_a")}
    assert "copies" not in drawn_names(charts["method"]["agreement"], tmp_path, "agreement")


def test_charts_name_no_colour(charts: Charts) -> None:
    for own in charts.values():
        for chart in own.values():
            spec = chart.to_dict()
            spec.pop("config", None), spec.pop("datasets", None)
            assert not re.search(r"#[0-9a-f]{6}\b", json.dumps(spec))


@pytest.mark.parametrize(("palette", "page"), [("default", "#ffffff"), ("slate", "#1e2129")])
def test_colours_stand_out_from_the_page(palette: str, page: str) -> None:
    category = configurations()[palette]["range"]["category"]
    assert all(contrast(colour, page) >= 3 for colour in category)


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two #rrggbb colours as WCAG 2 defines it."""

    def luminance(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)
