"""The driver's records as a timeline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.base.errors import HotpathError
from analysis.base.records import write_records
from analysis.measure.profile.timeline import direction, normalised
from analysis.results.store.records import Event
from analysis.site.facts.captures import read_events

Raw = tuple[int, int, int | None, str, str, int | None, int]


def test_a_timeline_begins_at_zero_and_runs_in_order(tmp_path: Path) -> None:
    raw: list[Raw] = [
        (5_000, 9_000, 7, "kernel", "_Z4copyv", None, 3),
        (2_000, 3_500, None, "host call", "cudaLaunchKernel", None, 3),
        (0, 0, 7, "memcpy", "memcpy", 64, 4),
    ]
    first, second = normalised("one", raw)
    assert (first.name, first.start, first.end) == ("cudaLaunchKernel", 0.0, 1.5e-6)
    assert second.stream == 7
    assert [second.start, second.end] == pytest.approx([3e-6, 7e-6])
    other = replace(second, variant="other")
    write_records(tmp_path / "t.csv", Event, [first, second, other])
    read = read_events(tmp_path / "t.csv", "one")
    assert read["end"].tolist() == pytest.approx([1.5e-6, 7e-6])
    assert read["stream"].isna().tolist() == [True, False]


@pytest.mark.parametrize(("copy_kind", "said"), [(1, "HtoD"), (2, "DtoH"), (8, "DtoD")])
def test_copy_has_its_direction(copy_kind: int, said: str) -> None:
    assert direction(copy_kind) == said


def test_empty_timeline_has_only_a_header(tmp_path: Path) -> None:
    assert normalised("one", []) == []
    write_records(tmp_path / "t.csv", Event, [])
    assert read_events(tmp_path / "t.csv", "one").empty
    (tmp_path / "t.csv").write_text("")
    with pytest.raises(HotpathError, match=r"t\.csv: line 1: expected the columns"):
        read_events(tmp_path / "t.csv", "one")
