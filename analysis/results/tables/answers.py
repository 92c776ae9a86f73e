"""Limits of answers by forms and commands: near measured cases, never beyond the link."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pandas as pd

from analysis.results.collect import collect
from analysis.results.tables.summary import summarise
from analysis.study import Study, find_study
from analysis.study.keys import Limit

NEAR: Final = 1.25
"""Largest factor between a question and what was measured, on every axis."""


def fresh_rows(results: Path, study: Study) -> pd.DataFrame:
    """Fresh and verified rows of a study's summary, read from the folder of results."""
    samples = collect(results, {study.name: study}, only={study.name}).samples
    summary = summarise(samples, {study.name: study})
    is_fresh = (summary["stale"].astype(int) == 0) & (summary["verified"].astype(int) == 1)
    return summary[is_fresh]


def link_rates(results: Path, limit: Limit) -> Mapping[str, float]:
    """Highest measured payload rate of a study's `limit` in B/s, by machine."""
    study = find_study(limit.study)
    rows = fresh_rows(results, study)
    rows = rows[(rows["variant"] == limit.variant) & rows["metric"].isin(study.time_metrics)]
    payloads = [study.payloads.get((limit.variant, case), 0) for case in rows["case"]]
    rates = payloads / rows["median"]
    return {
        str(machine): float(rate) for machine, rate in rates.groupby(rows["machine"]).max().items()
    }
