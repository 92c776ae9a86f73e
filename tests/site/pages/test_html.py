"""HTML of pages: escaped once, tables of rows, folded evidence."""

from __future__ import annotations

from pathlib import Path

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from analysis.site.pages.fragments import Place
from analysis.site.pages.html import NO_HTML, code, fenced, joined, plain, prose, table
from analysis.site.pages.templates import macros


def test_tables_escape_their_cells() -> None:
    assert "<td>&lt;b&gt;</td>" in table([{"a": "<b>"}])
    assert '<th scope="col">&lt;a&gt;</th>' in table([{"<a>": "b"}])
    assert "<td><code>&lt;b&gt;</code></td>" in table([{"a": code("<b>")}])
    assert "<caption>1 &lt; 2</caption>" in table([{"a": "b"}], caption="1 < 2")
    assert ' id="a&#34;b"' in table([{"a": "b"}], ids=['a"b'])


def test_a_table_has_the_columns_that_are_filled_and_sets_numbers_right() -> None:
    shown = table([{"name": "a", "rate": "48 GB/s", "none": ""}, {"name": "b", "of": code("5 %")}])
    assert "none" not in shown
    assert '<td class="hp-number">48 GB/s</td>' in shown
    assert '<td class="hp-number"><code>5 %</code></td>' in shown
    assert "<td>a</td>" in shown
    assert table([]) == table([{"a": ""}]) == NO_HTML


def test_joined_text_is_escaped_once() -> None:
    assert joined("<br>", ["<a>", code("&")]) == "&lt;a&gt;<br><code>&amp;</code>"
    assert joined(", ", []) == ""
    assert prose("a `<b>` & c") == "a <code>&lt;b&gt;</code> &amp; c"
    assert plain("*a* {{ b }} <c>") == "&#42;a&#42; &#123;&#123; b &#125;&#125; &lt;c&gt;"


def test_a_missing_value_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="text"):
        macros("text.html").link(address="a")


def test_templates_write_no_line_breaks_but_keep_attributes_apart() -> None:
    summary = {"description": "d", "choices": [], "sizes": {"wide": [1, 1], "narrow": [1, 1]}}
    figure = macros("figure.html").chart("a", "b", "c", "./", summary, "")
    assert "\n" not in figure
    assert 'data-chart="a" data-spec="./c.json" data-root="./"><form' in figure


def test_fence_is_longer_than_any_inside() -> None:
    assert fenced("a", "sh") == "``` sh\na\n```"
    assert fenced("```\na\n```\n", "text").startswith("```` text\n```\na")


def test_folded_evidence_is_a_separate_page(tmp_path: Path) -> None:
    place = Place(tmp_path, "../../")
    content = Markup("<p>it</p>")
    fold = place.folded("evidence/s/v/source.html", "a <b>", "of <v>", content, anchor='v"-source')
    assert '<summary><a href="../../evidence/s/v/source.html">a &lt;b&gt;</a></summary>' in fold
    assert 'id="v&#34;-source"' in fold and "it" not in fold
    page = (tmp_path / "evidence" / "s" / "v" / "source.html").read_text()
    assert "<title>of &lt;v&gt;</title>" in page
    assert 'href="../../../assets/fragment.css"' in page
    assert "<main><p>it</p></main>" in page
