"""Charts as pictures: without scripts and links."""

from __future__ import annotations

import re
from pathlib import Path

import altair as alt
import pandas as pd
import pytest

from analysis.site.charts.still import Still
from analysis.site.charts.theme import COLUMN_PX, finish, panels
from analysis.site.charts.writing import write_charts
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.study_facts import StudyFacts
from tests.roots import drawn_charts

HOSTILE = '<script>alert(1)</script>"\x08&'
COLOUR = r'(?:fill|stroke)="([^"]*)"'


@pytest.fixture(scope="module")
def steps(two_machines: Inputs, tmp_path_factory: pytest.TempPathFactory) -> Still:
    facts = StudyFacts(two_machines, two_machines.studies["copy"])
    folder = tmp_path_factory.mktemp("copy")
    write_charts({"steps": drawn_charts(facts)["steps"]}, folder, "copy")
    return Still(folder / "steps.vg.json")


def made_up(folder: Path, *, clip: bool = False) -> Still:
    """A machine's dot with a malicious name."""
    table = pd.DataFrame({"machine": ["box"], "what": [HOSTILE], "y": [1.0]})
    dots = alt.Chart().mark_text(clip=clip).encode(y="y:Q", text="what:N", href="what:N")
    chart = finish(panels(dots.properties(height=50), table), "Dots.", 80, 60)
    write_charts({"dots": chart}, folder, "made_up")
    return Still(folder / "dots.vg.json")


def test_it_has_a_bar_for_each_variant_and_machine(steps: Still) -> None:
    drawn = steps.drawn(COLUMN_PX).svg
    rows = pd.read_csv(steps.specification.with_name("steps.csv"))
    is_bar = (rows["is_default"] == 1) & (rows["role"] != "ceiling")
    shown = rows[is_bar & (rows["state"] == "measured")]
    case = shown["case"].mode()[0]
    bars = re.findall(r'<path d="M0,[\d.]+h[\d.]+v13h', drawn)
    assert len(bars) == (shown["case"] == case).sum() > 0
    for name in {*shown["variant"], *shown["machine"]}:
        assert f">{name}<" in drawn


def test_it_is_shapes_and_words_in_colours_of_both_palettes(steps: Still) -> None:
    drawn = steps.drawn(COLUMN_PX).svg
    assert set(re.findall(r"<(\w+)", drawn)) == {"svg", "g", "path", "line", "text"}
    assert not re.search(r' (?:class|role|aria-\w+|href|on\w+)="', drawn)
    assert drawn.startswith(
        '<svg xmlns="http://www.w3.org/2000/svg" style="color-scheme: light dark"'
    )
    plain = {"none", "transparent"}
    colours = set(re.findall(COLOUR, drawn)) - plain
    assert len(colours) > 4
    assert all(re.fullmatch(r"light-dark\(#\w{6},#\w{6}\)", one) for one in colours)


def test_it_fits_its_column(steps: Still) -> None:
    widths = [steps.drawn(px).width for px in (966, 700, 326)]
    assert widths[0] - widths[1] == pytest.approx(266, abs=1)
    assert widths[2] < widths[1]


def test_words_that_are_longer_in_other_fonts_have_the_room_of_the_column(tmp_path: Path) -> None:
    table = pd.DataFrame({"machine": ["box"], "y": [1.0], "x": [1.0]})
    dots = alt.Chart().mark_point().encode(x="x:Q", y="y:Q").properties(height=50)
    chart = finish(panels(dots, table), "Dots.", 300, 60)
    write_charts({"dots": chart}, tmp_path, "made_up")
    drawn = Still(tmp_path / "dots.vg.json").drawn(COLUMN_PX)
    assert drawn.width == COLUMN_PX
    assert f'viewBox="0 0 {COLUMN_PX} {drawn.height}"' in drawn.svg


def test_its_choices_are_the_selects(steps: Still) -> None:
    assert {"machine", "clock"} <= {one["name"] for one in steps.choices}


def test_text_of_the_data_is_escaped(tmp_path: Path) -> None:
    drawn = made_up(tmp_path).drawn(COLUMN_PX).svg
    assert '>&lt;script&gt;alert(1)&lt;/script&gt;" &amp;<' in drawn
    assert "<script" not in drawn and "href" not in drawn


def test_clips_are_numbered_from_zero_in_every_picture(tmp_path: Path) -> None:
    still = made_up(tmp_path, clip=True)
    first, second = still.drawn(COLUMN_PX), still.drawn(COLUMN_PX)
    assert first == second
    assert '<clipPath id="i0">' in first.svg and 'clip-path="url(#i0)"' in first.svg
