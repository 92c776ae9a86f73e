"""Measured times of this study for its tables and charts."""

from __future__ import annotations

from typing import Final

import pandas as pd

from analysis.api.charts import StudyFacts, fresh_figures

FETCH_ALL: Final = "ceiling_misses_alone"
"""Fetches rows that are given, without any look-up."""
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
