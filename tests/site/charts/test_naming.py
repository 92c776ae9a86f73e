"""Charts call machines as pages do; their data and choices keep the names of the folders."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from analysis.site.charts.still import Still
from analysis.site.charts.theme import COLUMN_PX
from analysis.site.charts.writing import write_chart
from tests.site.charts.conftest import Charts

NAMES = {"box": "2 × H200", "other-box": "H100"}


@pytest.mark.parametrize("name", ["steps", "cases"])
def test_a_panel_is_headed_by_the_name_that_pages_have(
    charts: Charts, tmp_path: Path, name: str
) -> None:
    written = write_chart(charts["copy"][name], tmp_path, name, "charts", NAMES)
    drawn = Still(tmp_path / f"{name}.vg.json").drawn(COLUMN_PX).svg
    headed = re.findall(r">([^<>]*(?:box|H[12]00))</text>", drawn)
    assert headed == list(NAMES.values())
    assert " on H100)" in written.text or " on 2 × H200)" in written.text
    assert "box" not in written.text


def test_data_and_choices_have_the_names_of_folders(charts: Charts, tmp_path: Path) -> None:
    write_chart(charts["copy"]["steps"], tmp_path, "steps", "charts", NAMES)
    assert set(pd.read_csv(tmp_path / "steps.csv")["machine"]) == set(NAMES)
    signals = json.loads((tmp_path / "steps.vg.json").read_text())["signals"]
    bind = next(one["bind"] for one in signals if one["name"] == "machine_shown")
    assert dict(zip(bind["options"], bind["labels"], strict=True)) == {None: "all"} | NAMES


def test_a_tooltip_has_the_name_that_pages_have(charts: Charts, tmp_path: Path) -> None:
    write_chart(charts["copy"]["steps"], tmp_path, "steps", "charts", NAMES)
    document = json.loads((tmp_path / "steps.json").read_text())
    assert '"field": "machine"' not in json.dumps(document["spec"])
    (calculated,) = (one for one in document["transform"] if "calculate" in one)
    assert json.dumps(NAMES, ensure_ascii=False) in calculated["calculate"]
    assert '"title": "machine"' in json.dumps(document["spec"])
