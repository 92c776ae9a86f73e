"""What is fitted to the link of every machine, as a file between two stages."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from analysis.errors import HotpathError
from analysis.study import discover
from analysis.tables.links import Links, collect_links
from tests.linked import made_up


def test_a_fit_is_the_same_after_it_was_a_file(tmp_path: Path) -> None:
    root = made_up(tmp_path)
    links = collect_links(root / "results", discover(root))
    read = Links.from_text(links.to_text())
    assert read.to_text() == links.to_text()
    before, after = (one.every["box"].low for one in (links, read))
    np.testing.assert_array_equal(after.values(), before.values())
    assert math.isfinite(after.link_rate)


def test_a_machine_with_few_runs_has_nothing_to_hold_one_against(tmp_path: Path) -> None:
    root = made_up(tmp_path)
    links = collect_links(root / "results", discover(root))
    assert set(links.every) == {"box"} and not links.kept and not links.held


@pytest.mark.parametrize("text", ["[project]", "[]", '{"others": {}}', '{"every": {"box": {}}}'])
def test_a_file_of_something_else_is_one_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "links.json").write_text(text)
    with pytest.raises(HotpathError, match=r"links\.json: expected what `python -m analysis\."):
        Links.from_file(tmp_path / "links.json")
