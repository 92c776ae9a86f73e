"""Faults of pages: gaps, captions of what is not drawn, two values of one figure."""

import json
from pathlib import Path
from typing import Any

import pytest

from analysis.results.tables.rows import rows_of
from analysis.site.check.pages import page_faults
from analysis.site.facts.inputs import Inputs, MeasuredRow
from analysis.site.pages.html import PARTS, figure, gap


def faults(site: Path, inputs: Inputs, **pages: object) -> list[str]:
    for name, content in pages.items():
        (site / name).mkdir(exist_ok=True)
        (site / name / "index.html").write_text(str(content))
    return [str(one) for one in page_faults(site, inputs)]


def test_a_gap_is_named_with_its_page(tmp_path: Path, two_machines: Inputs) -> None:
    assert faults(tmp_path, two_machines, one=f"<p>{gap('nothing <yet>')}</p>") == [
        "page one: expected content, got 'nothing &lt;yet&gt;'"
    ]


def test_two_values_of_one_figure_are_named(tmp_path: Path, two_machines: Inputs) -> None:
    row, *_ = rows_of(two_machines.tables["summary"], MeasuredRow)
    same = figure("48 GB/s", row)
    assert faults(tmp_path, two_machines, one=same, two=same) == []
    other = str(same).replace(f"{row.median:.7g}", "5")
    key = f"{row.machine} {row.study} {row.variant} {row.case} {row.metric} median"
    assert faults(tmp_path, two_machines, two=other) == [
        f"figure {key}: expected one value, got {row.median:.7g} on one and 5 on two"
    ]


def drawing(caption: str, shapes: str) -> str:
    page = str(PARTS.drawing([shapes], caption))
    return page.replace("&lt;", "<").replace("&gt;", ">").replace("&#34;", '"')


def chart(site: Path, caption: str, mark: str = "bar", **row: Any) -> str:
    """A page with a chart of one row, of which machine and rate may be chosen."""
    document = {
        "mark": {"type": mark},
        "encoding": {"x": {"field": "rate", "type": "quantitative"}},
        "data": {"values": [{"machine": "box", "rate": 1.0, "state": "measured", **row}]},
        "usermeta": {"selects": [{"column": "machine", "options": ["box"], "chosen": 0}]},
    }
    (site / "charts" / "pools").mkdir(parents=True, exist_ok=True)
    (site / "charts" / "pools" / "rates.json").write_text(json.dumps(document))
    return (
        '<figure class="hp-chart" id="chart-rates" data-spec="../charts/pools/rates.json">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


CHOSEN = "expected marks for machine = box, which can be chosen, got none in chart-rates"
BAR, POINT = "A bar a machine.", {"mark": "point"}


@pytest.mark.parametrize(
    ("caption", "given", "missing"),
    [
        ("Within the reach (shaded).", "<rect/>", "shaded"),
        ("dashed lines: the model.", "<path/>", "dashed lines: the model"),
        ("whiskers: intervals", "<line/>", "whiskers"),
        (BAR, {}, ""),
        ("Whiskers: intervals.", {"mark": "rule"}, ""),
        ("Open diamonds: others.", POINT | {"state": "published"}, ""),
        ("Points; grey: undecided.", POINT, "grey"),
        (BAR, {"rate": None}, CHOSEN),
        (BAR, {"rate": None, "state": "skipped"}, ""),
    ],
)
def test_a_figure_has_what_its_caption_names_and_its_menus_offer(
    tmp_path: Path, two_machines: Inputs, caption: str, given: Any, missing: str
) -> None:
    is_chart = isinstance(given, dict)
    page = chart(tmp_path, caption, **given) if is_chart else drawing(caption, given)
    place = "chart-rates" if is_chart else "a drawing"
    fault = f"expected {missing!r} to be drawn in {place}, got none"
    expected = [f"page one: {CHOSEN if missing == CHOSEN else fault}"] * bool(missing)
    assert faults(tmp_path, two_machines, one=page) == expected


def test_a_page_has_all_parts_of_its_study(tmp_path: Path, two_machines: Inputs) -> None:
    """Those of the charts that only the study has; each may be on another page."""
    charts = tmp_path / "charts" / "copy"
    charts.mkdir(parents=True)
    empty = json.dumps({"data": {"values": []}, "usermeta": {"selects": []}})
    for file in ("steps.json", "own.json", "own.wide.svg", "advice.form.json"):
        (charts / file).write_text(empty)
    study = two_machines.studies["copy"]
    steps = [variant.name for variant in study.with_role("step", "beyond")]
    anchors = [*steps, *(f"copy-{claim.id}" for claim in study.claims)]
    whole = "".join(f'<p id="{anchor}">' for anchor in anchors)
    (tmp_path / "studies").mkdir()
    pages = {"studies/copy": whole, "advice": '<figure data-source="charts/copy/advice.form.json">'}
    where = "copy/page: expected"
    assert faults(tmp_path, two_machines, **pages) == [f"{where} chart own, got none"]
    pages["one"] = '<figure data-spec="../charts/copy/own.json"><p data-table="copy/own.json">'
    assert faults(tmp_path, two_machines, **pages) == []
    pages["studies/copy"] = whole.replace(f'id="{steps[-1]}"', "")
    missing = f"{where} a section of {steps[-1]}, got none"
    assert faults(tmp_path, two_machines, **pages) == [missing]
