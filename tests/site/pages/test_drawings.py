"""Drawings: complete at both widths, legible, described in words, not part of hashes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from markupsafe import Markup

from analysis import ROOT
from analysis.base.errors import FieldError
from analysis.site.facts.inputs import load_inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.drawings import SOURCE, WIDTHS, drawing_figure, study_drawings
from analysis.site.pages.svg import Canvas, element
from analysis.study.source import source_files
from tests.drawn import assert_legible
from tests.repository import STUDIES

DRAWN = [name for name, study in STUDIES.items() if (study.folder / f"{SOURCE}.py").exists()]


def facts_of(study: str, derived: Path | None = None) -> StudyFacts:
    """A study of the repository without results, and with the tables of its code in `derived`."""
    nothing = ROOT / "nothing"
    of_code = {study: derived} if derived else {}
    inputs = load_inputs(nothing, nothing, {study: STUDIES[study]}, of_code)
    return StudyFacts(replace(inputs, derived={study: {}, **inputs.derived}), STUDIES[study])


@pytest.mark.parametrize("study", DRAWN)
def test_drawing_is_complete_without_overlapping_words(study: str) -> None:
    for drawing in study_drawings(facts_of(study)).values():
        if drawing is not None:  # that of a table is tested with the study's modules
            assert_legible(drawing)


@pytest.mark.parametrize("study", DRAWN)
def test_drawing_has_a_description_for_screen_readers(study: str) -> None:
    facts = facts_of(study)
    pages = "".join(page.read_text() for page in ROOT.glob("docs/**/*.md"))
    for name, drawing in study_drawings(facts).items():
        assert f"drawing('{name}'" in pages, "a drawing that no page shows"
        figure = drawing_figure(facts, name, "What <it> shows.")
        if drawing is None:
            assert "Nothing to draw yet" in figure
            continue
        assert figure.count('role="img"') == len(WIDTHS)
        assert figure.count(str(Markup.escape(drawing.description))) == len(WIDTHS)
        ids = re.findall(r' id="([^"]+)"', figure)
        assert len(set(ids)) == len(ids) == 2 * len(WIDTHS)
        assert "What &lt;it&gt; shows." in figure


@pytest.mark.parametrize("study", DRAWN)
def test_no_result_belongs_to_a_drawing(study: str) -> None:
    for variant in STUDIES[study].variants:
        assert f"{SOURCE}.py" not in {path.name for path in source_files(STUDIES[study], variant)}


def test_unknown_drawing_names_the_known_ones() -> None:
    with pytest.raises(FieldError, match=r"drawing: expected one of \['pool_sizes'\], got 'x'"):
        drawing_figure(facts_of("pool_gather"), "x", "")


@pytest.mark.parametrize("file", sorted(ROOT.glob("*/*/*.svg")), ids=lambda file: file.stem)
def test_a_picture_is_described_and_on_a_page(file: Path) -> None:
    name, size = file.stem.split(".")
    root = ElementTree.parse(file).getroot()
    assert root.get("class") == f"hp-{size}" and root.get("role") == "img"
    for attribute, child in (("aria-labelledby", "title"), ("aria-describedby", "desc")):
        found = root.find(f"{{http://www.w3.org/2000/svg}}{child}")
        assert found is not None and found.text and found.get("id") == root.get(attribute)
        assert root.get(attribute) == f"{name}-hp-{size}-{child}"
    study = file.parent.name
    pages = "".join(page.read_text() for page in (ROOT / "docs" / "studies").glob("*.md"))
    assert f"drawing('{name}'" in pages
    assert file.read_text() in drawing_figure(facts_of(study), name, "")


def test_element_escapes_its_text() -> None:
    assert element("text", "a < b", x=1.25, class_="", text_anchor='"') == (
        '<text x="1.2" text-anchor="&#34;">a &lt; b</text>'
    )


def test_boxes_of_one_kind_in_a_row_are_one_element() -> None:
    canvas = Canvas(100)
    for x, kind in ((0, "first"), (20, "first"), (40, "second"), (60, "first")):
        canvas.box(x, 5, 10, 15, kind)
    first = "M0.0 5.0h10.0v15.0H0.0zM20.0 5.0h10.0v15.0H20.0z"
    assert [part.count("M") for part in canvas.parts] == [2, 1, 1]
    assert canvas.parts[0] == f'<path d="{first}" class="first"></path>'
    assert canvas.height == 20
