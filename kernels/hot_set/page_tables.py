"""The table of the page: when a hot set pays."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from analysis.api.charts import PageTable, StudyFacts, fresh_figures
from analysis.api.quantities import binary, quantity, whole

from .answers import FIXED, HOT_SET
from .charts import FETCH_ALL, SCATTERED, USUAL_KEYS

GATHERS: Final = "pool_gather"
"""The study with fetches of all rows that the CPU packs."""
ON_REQUEST: Final = ("packed_on_request", "both_on_request", "met_on_request")
"""Steps, and gathers of that study, whose rows CPU threads pack."""
EVERY: Final = ["machine", "pool_mib", "rows"]
STEP: Final = ["machine", "requests", "pool_mib", "rows", "misses"]
TIMES: Final = ["median", "ci_low", "ci_high"]
NOT_MEASURED: Final = "No machine has measured these cases yet."


def hit_rates(facts: StudyFacts) -> PageTable:
    """The time of a layer with a hot set beside that of fetching all rows, each by its fastest
    step: by SMs alone, and packed by CPU threads. A cell compares only if both were measured in
    enough runs for an interval, and is faster or slower if the two intervals are apart."""
    steps = _usual(facts).dropna(subset="ci_low")
    alone = steps[steps["variant"].eq(FETCH_ALL) & steps["misses"].eq(steps["rows"])]
    steps = steps[steps["variant"].isin(HOT_SET.offered)]
    is_packed = steps["variant"].isin(ON_REQUEST)
    sides = [
        _compared(steps[~is_packed], alone).add_suffix(" by SMs"),
        _compared(steps[is_packed], _packed_alone(facts)).add_suffix(" packed"),
    ]
    table = pd.concat(sides, axis="columns").sort_index().astype(object).fillna("not measured")
    rows = [
        [
            *(facts.inputs.called(machine), whole(requests), binary(pool * 2**20)),
            *(f"{100 * (1 - misses / every):.1f} %", *cells),
        ]
        for (machine, requests, pool, every, misses), *cells in table.itertuples()
    ]
    columns = ["machine", "requests", "pool", "hit rate", *table.columns]
    return PageTable(columns, rows, NOT_MEASURED, numeric=columns[1:])


def _usual(facts: StudyFacts) -> pd.DataFrame:
    """Host times, which include the work of the CPU, in the cases of the page's tables; `rows` are
    all that the requests select."""
    cells = fresh_figures(facts, "host_time")
    others = [*{*facts.study.case_keys} - {*USUAL_KEYS}]
    is_usual = cells["layout"].eq(SCATTERED) & cells["slots"].eq(FIXED["slots"])
    is_usual &= cells["topk"].eq(FIXED["topk"])
    cells = cells[is_usual & cells[others].isna().all(axis=1)]
    return cells.assign(rows=cells["requests"] * cells["topk"])


def _packed_alone(facts: StudyFacts) -> pd.DataFrame:
    """Host times of gathers, without a look-up, of `rows` that CPU threads pack on request."""
    if GATHERS not in facts.inputs.studies:
        return _usual(facts)[:0]
    gathers = StudyFacts(facts.inputs, facts.inputs.studies[GATHERS])
    cells = fresh_figures(gathers, "host_time").dropna(subset="ci_low")
    others = [*{*gathers.study.case_keys} - {"rows", "pool_mib", "layout"}]
    is_usual = cells["layout"].eq(SCATTERED) & cells[others].isna().all(axis=1)
    return cells[is_usual & cells["variant"].isin(ON_REQUEST)]


def _compared(steps: pd.DataFrame, alone: pd.DataFrame) -> pd.DataFrame:
    """The fastest fetch of all rows and the fastest of `steps` in words, by machine, requests,
    pool, rows and misses."""
    steps, alone = (
        cells.astype({"pool_mib": float, "rows": float})  # which tables without rows do not have
        .sort_values("median", kind="stable")
        .drop_duplicates(key)[[*key, *TIMES]]
        for cells, key in ((steps, STEP), (alone, EVERY))
    )
    found = steps.merge(alone, on=EVERY, suffixes=("", "_all")).set_index(STEP)
    apart = [found["ci_high"] < found["ci_low_all"], found["ci_low"] > found["ci_high_all"]]
    verdicts = np.select(apart, ["faster", "slower"], "undecided")
    times = [[quantity(time, "s") for time in found[name]] for name in ("median_all", "median")]
    with_verdict = map(", ".join, zip(times[1], verdicts, strict=True))
    words = {"all rows": times[0], "hot set": [*with_verdict]}
    return pd.DataFrame(words, index=found.index)


TABLES: Final = {"hit_rates": hit_rates}
