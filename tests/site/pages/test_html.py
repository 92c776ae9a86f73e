"""Text of pages is escaped once."""

from __future__ import annotations

import pytest
from jinja2 import UndefinedError

from analysis.site.pages.html import code, joined, table
from analysis.site.pages.templates import FOLDER, macros


def test_tables_escape_their_cells() -> None:
    assert "<td>&lt;b&gt;</td>" in table(["a"], [["<b>"]])
    assert '<th scope="col">&lt;a&gt;</th>' in table(["<a>"], [])
    assert "<td><code>&lt;b&gt;</code></td>" in table(["a"], [[code("<b>")]])
    assert "<caption>1 &lt; 2</caption>" in table(["a"], [], caption="1 < 2")
    assert ' id="a&#34;b"' in table(["a"], [["b"]], ids=['a"b'])


def test_joined_text_is_escaped_once() -> None:
    assert joined("<br>", ["<a>", code("&")]) == "&lt;a&gt;<br><code>&amp;</code>"
    assert joined(", ", []) == ""


def test_a_row_with_another_number_of_cells_than_the_header_is_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        table(["a", "b"], [["1"]])


def test_a_missing_value_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="address"):
        macros("card.html").card(title="a")


def test_templates_write_no_line_breaks_but_keep_attributes_apart() -> None:
    assert {path.name for path in FOLDER.iterdir()} >= {"card.html", "figure.html", "table.html"}
    summary = {"description": "d", "choices": [], "sizes": {"wide": [1, 1], "narrow": [1, 1]}}
    figure = macros("figure.html").chart("a", "b", "c", "./", summary, "")
    assert "\n" not in figure
    assert 'data-chart="a" data-spec="./c.json" data-root="./"><form' in figure
