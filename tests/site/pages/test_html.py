"""HTML of pages: escaped once, tables of rows, folded pages and sections."""

from pathlib import Path

import markdown
import pytest
from markupsafe import Markup

from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.html import NO_HTML, code, element, fenced, joined, plain, prose, table
from tests.site.pages.conftest import page_in

TABLE = table([{"name": "a", "rate": "48 GB/s", "none": ""}, {"name": "b", "of": code("5 %")}])


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (table([{"a": "<b>"}]), "<td>&lt;b&gt;</td>"),
        (table([{"<a>": code("<b>")}]), '<th scope="col">&lt;a&gt;</th>'),
        (table([{"a": "b"}], caption="1 < 2", ids=['a"b']), ' id="a&#34;b"'),
        (element("a", "<", href='"', data_c="d"), '<a href="&#34;" data-c="d">&lt;</a>'),
        (joined("<br>", ["<a>", code("&")]), "&lt;a&gt;<br><code>&amp;</code>"),
        (prose("a `<b>` & c"), "a <code>&lt;b&gt;</code> &amp; c"),
        (plain("*a* {{ b }} <c>"), "&#42;a&#42; &#123;&#123; b &#125;&#125; &lt;c&gt;"),
        (fenced("```\na\n```\n", "text"), "```` text\n```\na"),
        # Numbers are set right.
        (TABLE, '<td>a</td><td class="hp-number">48 GB/s</td>'),
        (TABLE, '<td class="hp-number"><code>5 %</code></td>'),
    ],
)
def test_text_is_escaped_once(made: str, expected: str) -> None:
    assert expected in made


def test_a_table_has_the_columns_that_are_filled() -> None:
    assert "none" not in TABLE
    assert table([]) == table([{"a": ""}]) == NO_HTML


def test_folded_evidence_is_a_separate_page(tmp_path: Path, measured: StudyFacts) -> None:
    page, content = page_in(tmp_path, measured.inputs), Markup("<p>it</p>")
    fold = page.fold("evidence/s/v/source.html", "a <b>", "of <v>", content, 'v"-source')
    assert '<summary><a href="../../evidence/s/v/source.html">a &lt;b&gt;</a></summary>' in fold
    assert 'id="v&#34;-source"' in fold and "it" not in fold and "\n" not in fold
    written = (tmp_path / "evidence" / "s" / "v" / "source.html").read_text()
    assert "<title>of &lt;v&gt;</title>" in written
    assert 'href="../../../assets/fragment.css"' in written
    assert "<main><p>it</p></main>" in written


def test_a_folded_section_ends_at_the_next_heading_of_its_level() -> None:
    extensions = ["attr_list", "toc", "analysis.site.pages.sections"]
    text = "# T\n\n## One {: .fold }\n\nhidden\n\n### A {: .fold }\n\nx\n\n### B\n\n## Two\n\nshown"
    page = markdown.markdown(text, extensions=extensions).replace("\n", "")
    fold = (
        '<details class="hp-section hp-{0}"><summary><{0} id="{1}">{2}</{0}></summary>{3}</details>'
    )
    inner = fold.format("h3", "a", "A", "<p>x</p>") + '<h3 id="b">B</h3>'
    folded = fold.format("h2", "one", "One", f"<p>hidden</p>{inner}")
    assert page == f'<h1 id="t">T</h1>{folded}<h2 id="two">Two</h2><p>shown</p>'
