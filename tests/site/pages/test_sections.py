"""Sections that are folded below their headings."""

from __future__ import annotations

import markdown

EXTENSIONS = ["attr_list", "toc", "analysis.site.pages.sections"]


def folded(text: str) -> str:
    return str(markdown.markdown(text, extensions=EXTENSIONS)).replace("\n", "")


def test_a_section_ends_at_the_next_heading_of_its_level() -> None:
    page = folded("## One {: .fold }\n\nhidden\n\n### Below\n\n## Two\n\nshown")
    heading = '<summary><h2 id="one">One</h2></summary>'
    inner = '<p>hidden</p><h3 id="below">Below</h3>'
    fold = f'<details class="hp-section hp-h2">{heading}{inner}</details>'
    assert page == f'{fold}<h2 id="two">Two</h2><p>shown</p>'


def test_a_folded_section_can_have_folded_sections() -> None:
    page = folded("## One {: .fold }\n\n### A {: #a .fold }\n\nfirst\n\n### B {: .fold }\n\nsecond")
    inner = [
        f'<details class="hp-section hp-h3"><summary><h3 id="{name}">{name.upper()}</h3></summary>'
        f"<p>{text}</p></details>"
        for name, text in (("a", "first"), ("b", "second"))
    ]
    assert page.endswith(f"</summary>{''.join(inner)}</details>")


def test_other_sections_stay_open() -> None:
    assert "details" not in folded("# Title\n\n## One\n\ntext\n\n## Two {: .wide }")
