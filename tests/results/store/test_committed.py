"""The committed results."""

from __future__ import annotations

import pytest

from analysis import ROOT
from analysis.results.collect import collect
from analysis.results.store.runs import listed, machines, read_runs
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
