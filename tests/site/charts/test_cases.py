"""Chart of a study over its cases: the key of the axis, its ticks, and distinguishable marks."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import vl_convert

from analysis.site.charts.theme import COLOURS, GREY, STEP_COLOUR, varying_keys
from tests.site.charts.conftest import Charts


@pytest.mark.parametrize(
    ("study", "along"), [("copy", "payload_bytes"), ("strides", "case_row_bytes")]
)
def test_lines_run_along_the_key_with_most_cases_beside_the_headline(
    charts: Charts, study: str, along: str
) -> None:
    spec = charts[study]["cases"].to_dict()
    layers = [mark for role in spec["spec"]["layer"] for mark in role["layer"]]
    assert {layer["encoding"]["x"]["field"] for layer in layers} == {along}
    assert {layer["encoding"]["x"]["scale"]["type"] for layer in layers} == {"log"}


def test_a_case_without_a_key_that_others_have_is_another_choice(charts: Charts) -> None:
    # The headline has no `rows`; cases with `rows` form another line.
    chart = charts["strides"]["cases"]
    spec = chart.to_dict()
    selects = {param["name"]: param for param in spec["params"] if "bind" in param}
    rows = selects["case_rows_shown"]
    assert rows["value"] is None
    assert rows["bind"]["options"] == [None, 512, 1024, 2048, 4096]
    assert rows["bind"]["labels"][0] == "none"
    assert drawn_points(spec) == 2 * chart.data["case_row_bytes"].nunique()
    rows["value"] = 4096
    assert drawn_points(spec) == 2 * 2


def test_one_value_that_some_cases_of_a_variant_lack_is_a_choice() -> None:
    points = pd.DataFrame({"variant": ["one"] * 2, "case_rows": [1, 1], "case_pause": [50, None]})
    facts: Any = SimpleNamespace(study=SimpleNamespace(case_keys=["rows", "pause"]))
    assert varying_keys(points, facts) == ["case_pause"]


def test_variant_off_the_axis_is_in_no_legend(charts: Charts) -> None:
    spec = charts["strides"]["cases"].to_dict()
    assert "engine" not in json.dumps(spec)
    assert "case_bytes_shown" not in json.dumps(spec["params"])


@pytest.mark.parametrize(
    ("study", "ticks"),
    [
        # The headline's one of 500 and 512.
        ("strides", [16, 64, 512, 4096]),
        # At the headline, the bytes of most variants: one has rows of another size.
        ("copy", [batch * 2048 * 64 for batch in (1, 16, 64, 128)]),
    ],
)
def test_the_headline_has_a_tick_of_its_own(charts: Charts, study: str, ticks: list[int]) -> None:
    spec = charts[study]["cases"].to_dict()
    assert spec["spec"]["layer"][0]["layer"][0]["encoding"]["x"]["axis"]["values"] == ticks


def test_others_differ_in_colour_or_shape_and_are_no_grey(charts: Charts) -> None:
    others = charts["copy"]["cases"].to_dict()["spec"]["layer"][1]
    assert "of_run" in json.dumps(others), "runs of a figure without an interval"
    encoding = others["layer"][-1]["encoding"]
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
