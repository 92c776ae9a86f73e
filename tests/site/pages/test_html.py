"""Text of pages is escaped once."""

from __future__ import annotations

from analysis.site.pages.html import code, joined, table


def test_tables_escape_their_cells() -> None:
    assert "<td>&lt;b&gt;</td>" in table(["a"], [["<b>"]])
    assert '<th scope="col">&lt;a&gt;</th>' in table(["<a>"], [])
    assert "<td><code>&lt;b&gt;</code></td>" in table(["a"], [[code("<b>")]])
    assert "<caption>1 &lt; 2</caption>" in table(["a"], [], caption="1 < 2")
    assert ' id="a&#34;b"' in table(["a"], [["b"]], ids=['a"b'])


def test_joined_text_is_escaped_once() -> None:
    assert joined("<br>", ["<a>", code("&")]) == "&lt;a&gt;<br><code>&amp;</code>"
    assert joined(", ", []) == ""
