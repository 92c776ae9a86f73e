"""Measured times of this study, and the answers that its tables and its form make of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

import pandas as pd

from analysis.api.charts import StudyFacts, fresh_figures
from analysis.api.study import parse_case
from analysis.api.tables import Point, Times, link_rates

FETCH_ALL: Final = "ceiling_misses_alone"
"""Fetches rows that are given, without any look-up."""
PUBLISHED_WAY: Final = "v3_block_per_request"
"""The step in the way of the published kernels."""
SCATTERED: Final = "scattered"
USUAL_KEYS: Final = ("requests", "topk", "slots", "misses", "pool_mib", "layout")


def step_names(facts: StudyFacts) -> list[str]:
    """Steps of the journey and beyond with exact LRU whose rows are those of one layer, in their
    order."""
    size = facts.study.constants["token_bytes"]
    return [
        variant.name
        for variant in facts.study.with_role("step", "beyond")
        if variant.constants["token_bytes"] == size and "policy" not in variant.options
    ]


def scattered(facts: StudyFacts) -> pd.DataFrame:
    """The fresh figures of `fresh_figures` in cases of USUAL_KEYS only, with scattered rows. The
    median is in the column `seconds`; `misses` are those of all requests of a layer."""
    rows = fresh_figures(facts, "host_time")  # which includes the work of the CPU
    others = [*{*facts.study.case_keys} - {*USUAL_KEYS}]
    rows = rows[rows["layout"].eq(SCATTERED) & rows[others].isna().all(axis=1)]
    whole = dict.fromkeys(USUAL_KEYS[:-1], int)
    return rows.rename(columns={"median": "seconds"}).dropna(subset=USUAL_KEYS).astype(whole)


def times_by_machine(facts: StudyFacts) -> Mapping[str, Times]:
    """Seconds of a layer by each step, by machine and point: requests, bytes of the pool and
    misses, with the headline's slots. No time is shorter than the link needs.

    Points without the published way are left out: few variants are measured there.
    """
    rows, steps = scattered(facts), step_names(facts)
    least = rows["misses"] * facts.study.constants["token_bytes"] / rows["machine"].map(link(facts))
    rows = rows.assign(seconds=rows["seconds"].clip(lower=least.fillna(0)))
    rows = rows[rows["slots"] == parse_case(facts.study.headline)["slots"]]
    found: dict[str, dict[Point, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows[rows["variant"].isin(steps)].to_dict("records"):
        point = row["requests"], row["pool_mib"] * 2**20, row["misses"]
        found[row["machine"]][point][row["variant"]] = row["seconds"]
    complete = {
        machine: {point: ways for point, ways in times.items() if PUBLISHED_WAY in ways}
        for machine, times in found.items()
    }
    return {machine: times for machine, times in complete.items() if times}


def link(facts: StudyFacts) -> Mapping[str, float]:
    """Highest measured rate of the link in B/s, by machine: of the copy engine, or of the misses
    alone."""
    assert facts.study.limit is not None
    rows = scattered(facts)
    rows = rows[rows["variant"] == FETCH_ALL]
    rates = rows["misses"] * facts.study.constants["token_bytes"] / rows["seconds"]
    copied = pd.Series(link_rates(facts.inputs.results, facts.study.limit), dtype=float)
    rates = pd.concat([copied, rates.set_axis(rows["machine"])]).groupby(level=0).max()
    return dict(rates.items())
