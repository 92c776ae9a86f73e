"""The runs that a claim counts, over all committed results."""

from __future__ import annotations

from collections import Counter

import pandas as pd
import pytest

from analysis import ROOT
from analysis.results.store.collect import collect
from analysis.results.tables.claims import ClaimTables, claim_tables
from tests.repository import STUDIES
from tests.study.claims.studies import NO_MODEL

CLAIM = ["claim", "machine"]


@pytest.mark.parametrize("name", [name for name, study in STUDIES.items() if study.claims])
def test_a_claim_counts_the_runs_of_its_figures_and_no_others(name: str) -> None:
    studies = {name: STUDIES[name]}
    found = collect(ROOT / "results", studies, only={name})

    def tables(samples: pd.DataFrame) -> ClaimTables:
        return claim_tables(samples, studies, found.published, NO_MODEL)

    def figures(made: ClaimTables) -> pd.DataFrame:
        """Number of runs of each figure of the claims, by claim and machine."""
        rows = pd.concat([made.claims, made.parts])
        rows = rows[rows["by_run"] != ""]
        return rows.assign(of_figure=rows["by_run"].str.split("|").map(len)).set_index(CLAIM)

    of_all = tables(found.samples)
    counted = of_all.claims.set_index(CLAIM)[["runs", "hosts"]]
    every = figures(of_all)
    most = every.groupby(CLAIM)[["of_figure", "hosts"]].max()
    differing = counted.loc[most.index].ne(most.to_numpy()).any(axis=1)
    if not differing.any():
        return
    # Comparisons of one claim may be measured in different runs: those with a figure alone count.
    alone = Counter(
        claim
        for _, run in found.samples.groupby("run")
        for claim in set(figures(tables(run)).index)
    )
    runs = counted["runs"][differing[differing].index]
    assert runs.to_dict() == {claim: alone[claim] for claim in runs.index}
