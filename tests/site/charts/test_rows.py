"""Names of rows: left of the plot, or above their marks in a narrow column."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import altair as alt
import pandas as pd
import pytest

from analysis.site.charts.rows import NAME_PX, finish_rows, named, variant_rows
from analysis.site.charts.still import COLUMNS, Still
from analysis.site.charts.theme import panels
from analysis.site.charts.writing import write_chart

NAMES: Final = ["a_variant_with_a_long_name", "b_other"]
MACHINES: Final = ["box", "other-box"]
GROUP_PX: Final = 36


def texts(folder: Path, px: int) -> dict[str, Counter[str]]:
    """The words of the picture for each column, with their number; two marks a row."""
    table = pd.DataFrame(
        [(m, v, c, 1.0) for m in MACHINES for v in NAMES for c in ("x", "y")],
        columns=["machine", "variant", "case", "value"],
    )
    row = variant_rows(NAMES, table, px)
    marks = alt.Chart().mark_bar().encode(x="value:Q", y=row, color="case:N")
    layers = named(row, marks.encode(yOffset="case:N") if px else marks, px=px)
    write_chart(finish_rows(panels(layers, table), "Rows.", 200, px=px), folder, "rows", "charts")
    return {
        name: _words(one.svg) for name, one in Still(folder / "rows.vg.json").pictures().items()
    }


def _words(svg: str) -> Counter[str]:
    return Counter(one.text or "" for one in ElementTree.fromstring(svg).iter() if one.text)


@pytest.mark.parametrize("px", [pytest.param(0, marks=pytest.mark.long), GROUP_PX])
def test_each_row_has_its_name_once_a_panel_in_either_column(px: int, tmp_path: Path) -> None:
    found = texts(tmp_path, px)
    assert set(found) == set(COLUMNS)
    for words in found.values():
        assert {name: words[name] for name in NAMES} == dict.fromkeys(NAMES, len(MACHINES))


@pytest.mark.parametrize("px", [pytest.param(0, marks=pytest.mark.long), GROUP_PX])
def test_a_narrow_column_gives_the_room_of_the_names_to_the_plot(px: int, tmp_path: Path) -> None:
    texts(tmp_path, px)
    specification = (tmp_path / "rows.vg.json").read_text()
    assert "(compact ? 35 : 200)" in specification
    step = f"compact ? {px + NAME_PX} : {px}" if px else "compact ? 36 : 25"
    assert step in specification
