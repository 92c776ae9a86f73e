"""The small pictures of steps."""

from __future__ import annotations

import re

from analysis.site.pages.pictures import HEIGHT, TOP, Mark, columns

STEP = Mark(2.0, 1.5, 2.1, "step", "")


def ends(attribute: str, *marks: Mark, limit: float = 4.0) -> list[float]:
    found = re.findall(f' {attribute}="([^"]+)"', str(columns(marks, limit, "")))
    return list(map(float, found))


def test_an_interval_that_would_flatten_the_columns_ends_at_the_top() -> None:
    wide = Mark(2.0, 0.5, 80.0, "step", "")
    column, beside = ends("height", wide, STEP)
    assert column == beside > HEIGHT / 3
    assert min(ends("y2", wide, STEP)) == TOP


def test_narrow_interval_does_not_set_the_scale() -> None:
    assert min(ends("y2", STEP)) == ends("y1", STEP)[-1] == TOP
