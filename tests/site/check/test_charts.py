"""Faults of charts: no marks, text where a number is drawn, and choices without marks."""

from __future__ import annotations

import json
from pathlib import Path

import altair as alt
import pandas as pd

from analysis.site.charts.theme import Chart, finish, panels, select
from analysis.site.charts.writing import write_charts
from analysis.site.check.charts import chart_faults


def chart_of(table: pd.DataFrame) -> Chart:
    points = (
        alt.Chart()
        .mark_point()
        .encode(x="pool:Q", y="rate:Q")
        .transform_filter("datum.rows === rows_shown")
    )
    rows = select("rows_shown", "rows", [1, 2], 1)
    return finish(panels(alt.layer(points), table, rows), "Rates.", margin=70, compact_margin=60)


def faults(site: Path, table: pd.DataFrame) -> list[str]:
    write_charts({"rates": chart_of(table)}, site / "charts" / "pools", "pools")
    (site / "index.html").write_text('<figure data-spec="charts/pools/rates.vg.json">')
    return [str(one) for one in chart_faults(site)]


def whole() -> pd.DataFrame:
    return pd.DataFrame(
        {"machine": "box", "pool": [1.0, 2.0] * 2, "rate": [4.0, 3.0] * 2, "rows": [1, 1, 2, 2]}
    )


def test_a_whole_chart_has_no_faults(tmp_path: Path) -> None:
    assert faults(tmp_path, whole()) == []
    written = json.loads((tmp_path / "charts" / "pools" / "rates.json").read_text())
    assert written["usermeta"]["marks"] == {"symbol": 2}


def test_text_where_a_number_is_drawn_is_named(tmp_path: Path) -> None:
    text = whole().astype({"rate": object})
    text.loc[0, "rate"] = "fast"
    assert "chart pools/rates: expected numbers in the column rate, got text" in faults(
        tmp_path, text
    )


def test_a_chart_without_marks_is_named(tmp_path: Path) -> None:
    found = faults(tmp_path, whole().assign(rate=float("nan")))
    assert "chart pools/rates: expected numbers in the column rate, got none" in found
    assert "chart pools/rates: expected marks in the default selection, got none" in found


def test_a_choice_without_marks_is_named(tmp_path: Path) -> None:
    assert faults(tmp_path, whole().query("rows == 1")) == [
        "chart pools/rates: expected marks for rows = 2, which can be chosen, got none"
    ]
