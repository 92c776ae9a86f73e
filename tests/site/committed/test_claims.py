"""The runs that a claim counts, over all committed results."""

from __future__ import annotations

from collections import Counter

import pandas as pd
import pytest

from analysis.results.collect import Collected
from analysis.results.tables.claims import claim_tables
from analysis.site.facts.inputs import Inputs
from tests.repository import STUDIES
from tests.study.claims.studies import NO_COUNTS, NO_MODEL

CLAIM = ["claim", "machine"]


@pytest.mark.parametrize("name", [name for name, study in STUDIES.items() if study.claims])
def test_a_claim_counts_the_runs_of_its_figures_and_no_others(
    committed: Inputs, collected: Collected, name: str
) -> None:
    of_study = {
        table: rows[rows["study"] == name]
        for table in ("claims", "claim_parts")
        for rows in [committed.tables[table]]
    }

    def figures(claims: pd.DataFrame, parts: pd.DataFrame) -> pd.DataFrame:
        """Number of runs of each figure of the claims, by claim and machine."""
        rows = pd.concat([claims, parts])
        rows = rows[rows["by_run"] != ""]
        return rows.assign(of_figure=rows["by_run"].str.split("|").map(len)).set_index(CLAIM)

    counted = of_study["claims"].set_index(CLAIM)[["runs", "hosts"]]
    every = figures(*of_study.values())
    most = every.groupby(CLAIM)[["of_figure", "hosts"]].max()
    differing = counted.loc[most.index].ne(most.to_numpy()).any(axis=1)
    if not differing.any():
        return
    # Comparisons of one claim may be measured in different runs: those with a figure alone count.
    samples, published = collected.samples, collected.published
    samples = samples[samples["study"] == name]
    alone = Counter(
        claim
        for _, run in samples.groupby("run")
        for made in [claim_tables(run, {name: STUDIES[name]}, published, NO_MODEL, NO_COUNTS)]
        for claim in set(figures(*made).index)
    )
    runs = counted["runs"][differing[differing].index]
    assert runs.to_dict() == {claim: alone[claim] for claim in runs.index}
