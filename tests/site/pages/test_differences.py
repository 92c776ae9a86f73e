"""Differences between steps on pages."""

from __future__ import annotations

from dataclasses import replace

from analysis.site.pages.differences import code_difference, fenced, highlighted, setting_difference
from tests.synthetic import COPY


def test_difference_shows_the_step_and_nothing_of_the_first() -> None:
    first, second = COPY.with_role("step")[:2]
    difference = code_difference(COPY, second)
    assert difference.startswith(f"--- {first.path.name}\n+++ {second.path.name}\n@@")
    changed = [line for line in difference.splitlines()[2:] if line[0] in "+-"]
    assert changed
    assert all(line[1:] in second.path.read_text() for line in changed if line[0] == "+")
    assert code_difference(COPY, first) == ""
    assert setting_difference(COPY, first) == []


def test_difference_in_settings_alone() -> None:
    second = COPY.with_role("step")[1]
    changed = replace(
        second, flags=("-maxrregcount=32",), constants={"row_bytes": 80, "slot_bytes": 64}
    )
    assert setting_difference(COPY, changed) == [
        "flags `-maxrregcount=32`",
        "`row_bytes = 80` instead of `64`",
    ]


def test_fence_is_longer_than_any_inside() -> None:
    assert fenced("a\n```\nb", "cpp").startswith("```` cpp\n")
    assert fenced("a\n\nb", "cpp") == "``` cpp\na\n\nb\n```"


def test_highlighted_code_is_escaped() -> None:
    block = highlighted("<b> = 1", "python")
    assert "&lt;" in block and "<b>" not in block
