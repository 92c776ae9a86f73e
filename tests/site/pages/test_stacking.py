"""Tables that are too wide for a narrow screen are cards there."""

from __future__ import annotations

import markdown
from markupsafe import Markup

from analysis.site.pages.html import table
from analysis.site.pages.stacking import NARROW_CHARACTERS, is_too_wide

EXTENSIONS = ["tables", "analysis.site.pages.stacking"]


def test_only_a_table_that_does_not_fit_is_stacked() -> None:
    narrow = {"machine": "H100", "rate": "48.5 GB/s", "basis": "3 runs"}
    assert "data-column" not in table([narrow])
    stacked = table([narrow, {**narrow, "basis": "words " * 9 + "x" * 30}])
    assert '<table class="hp" data-stacked>' in stacked
    assert '<td class="hp-number" data-column="rate">48.5 GB/s</td>' in stacked


def test_prose_wraps_and_code_does_not() -> None:
    word = "x" * NARROW_CHARACTERS
    assert not is_too_wide(["key", "meaning"], [["a", "words " * 20]])
    assert is_too_wide(["a", "b"], [["", Markup("<code>{}</code>").format(word)]])
    assert is_too_wide(["a", "b"], [[word, ""]])
    split = Markup("{0}<br>{0}").format(word[::2])
    assert not is_too_wide(["a", "b"], [[split, ""]])


def test_markup_has_no_width() -> None:
    link = Markup('<a href="{}">&lt;a&gt;</a>').format("x" * NARROW_CHARACTERS)
    assert not is_too_wide(["a", "b"], [["", link]])


def test_tables_in_markdown_are_stacked() -> None:
    row = f"| [a](b) | `{'x' * NARROW_CHARACTERS}`<br>c |"
    page = markdown.markdown(f"| one | *two* |\n|---|--:|\n{row}", extensions=EXTENSIONS)
    assert "<table data-stacked" in page
    assert '<td><a href="b">a</a></td>' in page
    assert 'data-column="two" style="text-align: right;"' in page
    narrow = markdown.markdown("| one | two |\n|---|---|\n| a | b |", extensions=EXTENSIONS)
    assert "data-column" not in narrow
