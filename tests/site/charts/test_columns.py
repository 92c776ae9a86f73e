"""A chart as a table of words."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from analysis.site.charts.columns import Measure, column_table, delivered_bytes, measure_of, text_of
from tests.repository import STUDIES

DATA = pd.DataFrame(
    {
        "machine": ["box", "box", "other"],
        "variant": ["slow", "fast", "fast"],
        "case_rows": [1, 2, 2],
        "seconds": [2e-3, 5e-7, None],
        "seconds_low": [1e-3, 4e-7, None],
        "label": ["2 ms", "500 ns", ""],
    }
)


def quantity(field: str, **more: Any) -> dict[str, Any]:
    return {"field": field, "type": "quantitative", **more}


def test_the_measure_is_no_key_and_no_end_of_an_interval() -> None:
    y = {"y": quantity("seconds_low", title="time")}
    x = {"x": quantity("case_rows"), "y": quantity("seconds", title="time")}
    measure = measure_of({"layer": [{"encoding": y}, {"encoding": x}]}, DATA)
    assert measure == Measure("seconds", "time", "seconds")
    assert measure_of({"encoding": {"x": quantity("case_rows")}}, DATA) is None


def test_the_measure_is_called_as_its_axis_or_legend_and_written_as_that() -> None:
    shares = pd.DataFrame({"value": [0.013, 0.25]})
    for titled in ({"title": "share"}, {"legend": {"title": "share"}, "title": None}):
        measure = measure_of({"encoding": {"color": quantity("value", **titled)}}, shares)
        assert measure == Measure("value", "share", "digits")
    x = quantity("value", title="share", axis={"format": "%"})
    measure = measure_of({"encoding": {"x": x}}, shares)
    assert measure == Measure("value", "share", "percent")
    assert text_of(shares, measure) == "2 points; share: from 1.3 % to 25 %."
    joined = pd.concat([shares, shares])
    assert text_of(joined, measure) == "4 points; share: from 1.3 % to 25 %."
    assert measure_of({"encoding": {"x": quantity("value", axis=None)}}, shares) is not None


def test_lowest_and_highest_have_their_units_and_places() -> None:
    text = text_of(DATA, Measure("seconds", "time by GPU", "seconds"))
    assert text == (
        "3 points of 2 variants and 2 machines; time by GPU: from 500.0 ns (fast on box)"
        " to 2.000 ms (slow on box)."
    )
    assert text_of(DATA[["label"]].head(1), None) == "1 point."


@pytest.mark.parametrize("hidden", ["seconds_low", "label"])
def test_table_omits_columns_of_the_drawing(hidden: str) -> None:
    columns = {field: (title, kind) for field, title, kind in column_table(DATA)}
    assert hidden not in columns
    assert columns["case_rows"] == ("rows", "plain")


def test_the_time_of_a_submission_is_no_rate() -> None:
    """The ends of rates are by clocks that wait for the payload."""
    metrics = ["gpu_time", "host_time", "submit_time", "cpu_time"]
    points = pd.DataFrame(
        {"rate": [48.0, 5.3, 3093.0, 2050.0], "metric": metrics, "is_default": [1, 1, 0, 1]}
    )
    rate = Measure("rate", "payload rate, GB/s", "digits")
    ends = text_of(points, rate).partition("; ")[2]
    assert ends == "payload rate, GB/s, by device or host time: from 5.30 to 48.0."
    assert text_of(points[:2], rate).endswith("; payload rate, GB/s: from 5.30 to 48.0.")
    seconds = points.rename(columns={"rate": "seconds"})
    assert "3093" in text_of(seconds, Measure("seconds", "time", "digits"))


def test_a_part_of_an_operation_delivers_no_payload() -> None:
    study = STUDIES["h2d_gather"]
    case = study.shown_case(study.variant("v3_loads_first"))
    assert delivered_bytes(case, "gpu_time") == case.payload_bytes > 0
    assert delivered_bytes(case, "cpu_time") == delivered_bytes(case, "submit_time") == 0
