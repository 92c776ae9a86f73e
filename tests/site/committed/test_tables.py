"""The publication check of the committed tables."""

from __future__ import annotations

from analysis.site.check import fatal
from analysis.site.check.tables import table_faults
from analysis.site.facts.inputs import Inputs
from analysis.study.config import load_config


def test_the_committed_results_have_no_gaps(committed: Inputs) -> None:
    published = load_config().published
    assert fatal([*table_faults(committed)], published, committed) == []
    assert {*committed.machines} <= {*published}
