"""The committed results."""

from __future__ import annotations

from itertools import groupby

import pytest

from analysis import ROOT
from analysis.base.records import read_records
from analysis.results.collect import collect
from analysis.results.store.records import HOST_CALL, Event
from analysis.results.store.runs import listed, machines, read_captures, read_runs
from analysis.results.store.samples import to_text
from tests.repository import STUDIES

COMMITTED = ROOT / "results"


def test_every_file_is_read() -> None:
    assert collect(COMMITTED, STUDIES).refused == {}


@pytest.mark.parametrize("machine", machines(COMMITTED))
def test_runs_are_of_clean_commits_and_verified(machine: str) -> None:
    for folder in listed(COMMITTED / machine):
        for run in read_runs(folder, STUDIES.get(folder.name)):
            assert run.about.dirty is False and len(run.about.commit or "") == 40, run.about.run
            assert all(row.verified == (row.status == "ok") for row in run.rows), run.about.run
            assert (folder / f"{run.about.run}.csv").read_text() == to_text(run.rows)


@pytest.mark.parametrize("machine", machines(COMMITTED))
def test_timelines_are_in_order_and_the_host_comes_first(machine: str) -> None:
    for folder in listed(COMMITTED / machine):
        for one in read_captures(folder):
            if one.about.kind != "timeline" or not one.about.files:
                continue
            events = read_records(one.path, Event)
            for _, group in groupby(events, key=lambda event: event.variant):
                of_variant = list(group)
                starts = [event.start for event in of_variant]
                assert starts == sorted(starts) and starts[0] == 0
                calls = {e.correlation: e for e in of_variant if e.kind == HOST_CALL}
                launched = [e for e in of_variant if e.kind != HOST_CALL and e.correlation in calls]
                assert all(e.start >= calls[e.correlation].start for e in launched)
