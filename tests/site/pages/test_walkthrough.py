"""The guided tour of the code: its files exist, and its picture is short and fits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from analysis import ROOT
from analysis.site.pages.drawings import WIDTHS
from analysis.site.pages.fragments import Place
from analysis.site.pages.svg import Canvas
from analysis.site.pages.walkthrough import PATH, READING, _draw, reading_list, sample_path

MONOSPACE_LETTER_PX = 6.7
"""Width of a letter of names in drawings: 11 px monospace."""

STOPS = [file for process in PATH for file, _ in process.stops]


def test_eight_files_are_read_first_and_each_has_a_page(tmp_path: Path) -> None:
    listed = str(reading_list(Place(tmp_path, "../")))
    links = re.findall(r'href="\.\./([^"]+)"><code>([^<]+)</code>', listed)
    assert [path for _, path in links] == list(READING) and len(READING) == 8
    for address, path in links:
        page = (tmp_path / address).read_text()
        assert f"<title>{path}</title>" in page
        first = (ROOT / path).read_text().split()[0].strip('"#/:')
        assert first in page


def test_a_sample_passes_few_stops_and_files_that_exist() -> None:
    assert len(STOPS) == len(set(STOPS)) <= 15
    assert [file for file in STOPS if not (ROOT / file).is_file()] == []
    assert 0 < sum(bool(process.writes) for process in PATH) <= 4
    assert PATH[-1].writes == ""


def test_every_stop_and_file_is_numbered_in_the_picture() -> None:
    picture = str(sample_path())
    for number, file in enumerate(STOPS, 1):
        assert f"{number}: {file} " in picture
    for number, process in enumerate(PATH[:-1], 1):
        escaped = process.writes.replace("<", "&lt;").replace(">", "&gt;")
        assert f"S{number}: {escaped}." in picture


@pytest.mark.parametrize("width", WIDTHS.values(), ids=list(WIDTHS))
def test_names_fit_into_the_picture(width: float) -> None:
    canvas = Canvas(width)
    _draw(canvas)
    names = re.findall(r'x="([\d.]+)"[^>]*class="name"[^>]*>([^<]+)<', "".join(canvas.parts))
    assert len(names) > len(STOPS)
    for x, text in names:
        letters = len(text.replace("&lt;", "<").replace("&gt;", ">"))
        assert float(x) + letters * MONOSPACE_LETTER_PX <= width
