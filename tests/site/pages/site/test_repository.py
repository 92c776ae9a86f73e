"""The pages of this repository, over made-up results of all its studies."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest
import vl_convert

from analysis import ROOT
from tests.site.pages.site.conftest import MEASURED


def test_pages_hold_no_measured_figure() -> None:
    figure = re.compile(r"\b\d[\d.,]*\s*(?:[GM]i?B/s|Gbps|[mµun]s\b|seconds|%|×|times faster)")
    for page in ROOT.glob("docs/**/*.md"):
        found = figure.findall(page.read_text())
        assert not found, f"{page.name}: {found}"


def test_the_home_page_lists_what_the_results_lack(site: Path) -> None:
    """The made-up machines are not published, so their faults stop no build."""
    home = (site / "index.html").read_text()
    (lines,) = re.findall(r'<ul class="hp-faults">(.*?)</ul>', home)
    assert "<li>box, " in lines


@pytest.mark.parametrize("study", MEASURED)
def test_every_study_has_a_page_and_charts_that_are_valid(site: Path, study: str) -> None:
    assert (site / "studies" / study / "index.html").exists()
    # The names of pictures and widgets have a second dot.
    charts = [path for path in (site / "charts" / study).glob("*.json") if "." not in path.stem]
    assert charts
    for path in charts:
        specification = json.loads(path.read_text())
        assert vl_convert.vegalite_to_vega(specification)
        assert specification["description"] and specification.pop("data")["values"]
        specification.pop("config", None)
        assert not re.search(r"#[0-9a-f]{6}\b", json.dumps(specification)), "one palette only"


def test_search_knows_counters_and_terms_in_a_small_index(site: Path) -> None:
    file = site / "search" / "search_index.json"
    assert file.stat().st_size < 2**20
    texts: dict[str, str] = {}
    for entry in json.loads(file.read_text())["docs"]:
        page = entry["location"].partition("#")[0]
        words = html.unescape(re.sub(r"<[^>]+>", "", f"{entry['title']} {entry['text']}"))
        texts[page] = f"{texts.get(page, '')} {words}"
    assert "pcie__read_bytes" in texts["glossary/"] and "Bounce buffer" in texts["glossary/"]
    assert "requests, the other way" not in texts["studies/h2d_gather/"], "words of a drawing"
