"""Drawings of the mechanism: whole at both widths, legible, told in words, outside of hashes."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from markupsafe import Markup

from analysis.derived import read_derived
from analysis.errors import FieldError
from analysis.facts.study_facts import StudyFacts
from analysis.report.drawings import SOURCE, WIDTHS, drawing_figure, study_drawings
from analysis.report.svg import LETTER_PX, Canvas, element
from analysis.source import source_files
from tests.repository import STUDIES

DRAWN = [name for name, study in STUDIES.items() if (study.folder / f"{SOURCE}.py").exists()]
ATTRIBUTES = re.compile(r' ([\w-]+)="([^"]*)"')


def facts_of(study: str, derived: Path | None = None) -> StudyFacts:
    """A study of the repository without results, and with the tables of its code in `derived`."""
    tables = {study: read_derived(derived)} if derived else {study: {}}
    inputs = SimpleNamespace(studies=STUDIES, derived=tables, absent={study: {}})
    return StudyFacts(cast(Any, inputs), STUDIES[study])


def drawn(part: Markup) -> tuple[str, dict[str, str], str]:
    """Name, attributes and text of an element."""
    head, _, text = part.partition(">")
    return head.split()[0][1:], dict(ATTRIBUTES.findall(head)), text.partition("<")[0]


def extent(attributes: dict[str, str], text: str) -> tuple[float, float]:
    """Where a line of words begins and ends, at most, in px."""
    x, width = float(attributes["x"]), LETTER_PX * len(str(Markup(text).unescape()))
    anchor = attributes.get("text-anchor", "start")
    start = x - width * {"start": 0, "middle": 0.5, "end": 1}[anchor]
    return start, start + width


@pytest.mark.parametrize("width", WIDTHS.values())
@pytest.mark.parametrize("study", DRAWN)
def test_a_drawing_is_whole_and_its_words_apart(study: str, width: float) -> None:
    for name, drawing in study_drawings(facts_of(study)).items():
        canvas = Canvas(width)
        drawing.draw(canvas)
        lines: dict[str, list[tuple[float, float]]] = {}
        for part in canvas.parts:
            kind, attributes, text = drawn(part)
            if kind == "rect":
                right = float(attributes["x"]) + float(attributes["width"])
                assert float(attributes["x"]) >= -1 and right <= width + 1, (name, part)
            if kind == "text" and "inside" not in attributes.get("class", ""):
                lines.setdefault(attributes["y"], []).append(extent(attributes, text))
        for y, extents in lines.items():
            extents.sort()
            assert extents[0][0] >= -1 and extents[-1][1] <= width + 4, (name, y)
            assert all(one[1] <= other[0] for one, other in itertools.pairwise(extents)), (name, y)


@pytest.mark.parametrize("study", DRAWN)
def test_a_drawing_is_told_to_those_who_do_not_see_it(study: str) -> None:
    facts = facts_of(study)
    page = (Path("docs") / "studies" / f"{study}.md").read_text()
    for name, drawing in study_drawings(facts).items():
        figure = drawing_figure(facts, name, "What <it> shows.")
        assert figure.count('role="img"') == len(WIDTHS)
        assert figure.count(str(Markup.escape(drawing.description))) == len(WIDTHS)
        ids = re.findall(r' id="([^"]+)"', figure)
        assert len(set(ids)) == len(ids) == 2 * len(WIDTHS)
        assert "What &lt;it&gt; shows." in figure
        assert f"drawing('{name}'" in page, "a drawing that no page shows"


@pytest.mark.parametrize("study", DRAWN)
def test_no_result_belongs_to_a_drawing(study: str) -> None:
    for variant in STUDIES[study].variants:
        assert f"{SOURCE}.py" not in {path.name for path in source_files(STUDIES[study], variant)}


def test_a_drawing_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(FieldError, match=r"drawing: expected one of \['lines', 'wire'\], got 'x'"):
        drawing_figure(facts_of("h2d_gather"), "x", "")


def test_a_missing_table_of_the_code_leaves_the_page_without_its_drawing() -> None:
    facts = facts_of("counters")
    inputs = replace(facts, inputs=cast(Any, SimpleNamespace(absent={"counters": {"t": "why"}})))
    assert "a table of the code is missing" in drawing_figure(inputs, "of a table", "")


def test_an_element_escapes_what_it_is_given() -> None:
    assert element("text", "a < b", x=1.25, class_="", text_anchor='"') == (
        '<text x="1.2" text-anchor="&#34;">a &lt; b</text>'
    )
