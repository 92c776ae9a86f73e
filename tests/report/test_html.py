"""Words that become part of a page are escaped, once."""

from __future__ import annotations

from markupsafe import Markup

from analysis.report.html import code, figure, joined, table


def test_tables_escape_what_they_are_given() -> None:
    assert "<td>&lt;b&gt;</td>" in table(["a"], [["<b>"]])
    assert '<th scope="col">&lt;a&gt;</th>' in table(["<a>"], [])
    assert "<td><code>&lt;b&gt;</code></td>" in table(["a"], [[code("<b>")]])
    assert "<caption>1 &lt; 2</caption>" in table(["a"], [], caption="1 < 2")
    assert ' id="a&#34;b"' in table(["a"], [["b"]], ids=['a"b'])


def test_what_is_joined_is_escaped_once() -> None:
    assert joined("<br>", ["<a>", code("&")]) == "&lt;a&gt;<br><code>&amp;</code>"
    assert joined(", ", []) == ""


def test_a_chart_keeps_what_its_description_says() -> None:
    shown = figure("s.json", "../", 'a "b" <c>', "d & e", "s.csv", Markup("<table></table>"))
    assert 'aria-label="a &#34;b&#34; &lt;c&gt;"' in shown
    assert "<figcaption>d &amp; e</figcaption>" in shown
    assert "</p><table></table></details>" in shown
