"""The publication check of the committed tables."""

from __future__ import annotations

import math

from analysis.results.model.terms import ABOUT
from analysis.site.check import fatal
from analysis.site.check.tables import behind, table_faults
from analysis.site.facts.inputs import Inputs
from analysis.study.claims.verdicts import HOLDS
from analysis.study.config import load_config


def test_the_committed_results_have_no_gaps(committed: Inputs) -> None:
    published = load_config().published
    assert fatal([*table_faults(committed)], published, committed) == []
    assert {*committed.machines} <= {*published}


def test_the_model_is_whole_on_the_machines_of_the_headline(committed: Inputs) -> None:
    """With it, the claim under the headline has a verdict, whichever it is."""
    known = {
        (row.machine, row.parameter) for row in committed.parameters if math.isfinite(row.value)
    }
    claims = committed.tables["claims"].set_index(["claim", "machine"])["verdict"]
    late = {machine for machine, study in behind(committed) if committed.studies[study].has_link}
    for machine in sorted({"nvidia-h100-80gb-hbm3", "nvidia-h200"} - late):
        assert {name for where, name in known if where == machine} == {*ABOUT}
        assert claims["walks_bind_in_large_pool", machine] == HOLDS
