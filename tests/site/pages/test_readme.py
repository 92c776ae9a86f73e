"""The picture of results in README.md: made from the committed results, and today's."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis import ROOT
from analysis.base.errors import HotpathError
from analysis.site.readme import BAR_COLUMNS, picture, rates, updated
from tests.repository import STUDIES
from tests.synthetic import at_rates, write_machine

STUDY = "h2d_gather"


def test_the_readme_shows_the_committed_results() -> None:
    readme = (ROOT / "README.md").read_text()
    shown = updated(readme, ROOT / "results", STUDIES)
    assert readme == shown, "run: env/run python -m analysis.site.readme"


def test_bars_are_as_long_as_rates(tmp_path: Path) -> None:
    study = STUDIES[STUDY]
    first, second, third, *_ = study.with_role("step")
    speed = {first.name: 40.0, second.name: 20.0, third.name: 0.01}
    steps = [first, second, third]
    write_machine(tmp_path, "box", study, variants=steps, seconds=at_rates(speed), noise=0)
    found = rates(study, "box", tmp_path)
    assert {name: rate.median for name, rate in found.items()} == pytest.approx(speed)
    *_, longest, half, least = picture(study, "box", found).splitlines()
    assert longest.count("█") == BAR_COLUMNS
    assert half.count("█") == BAR_COLUMNS // 2
    assert "▏" in least
    assert "40.0 (one run)" in longest


def test_missing_place_or_result_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(HotpathError, match="expected a place between"):
        updated("# Readme\n", tmp_path, STUDIES)
    place = f"<!-- results:begin {STUDY} box -->\n<!-- results:end -->\n"
    with pytest.raises(HotpathError, match=f"no result of {STUDY} on box"):
        updated(place, tmp_path, STUDIES)
