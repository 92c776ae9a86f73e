"""Tables of the page: what to take, what it costs, and when a hot set pays."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any, Final

import numpy as np
import pandas as pd
from markupsafe import Markup

from analysis.api.charts import PageTable, StudyFacts, fresh_figures, situations_of
from analysis.api.quantities import binary, percent, quantity, ratio, whole

from .answers import FIXED, HOT_SET, PUBLISHED_WAY
from .charts import FETCH_ALL, SCATTERED, USUAL_KEYS

GATHERS: Final = "pool_gather"
"""The study with fetches of all rows that the CPU packs."""
ON_REQUEST: Final = ("packed_on_request", "both_on_request", "met_on_request")
"""Steps, and gathers of that study, whose rows CPU threads pack."""
EVERY: Final = ["machine", "pool_mib", "rows"]
STEP: Final = ["machine", "requests", "pool_mib", "rows", "misses"]
TIMES: Final = ["median", "ci_low", "ci_high"]
NOT_MEASURED: Final = "No machine has measured these cases yet."
MIN_STEPS: Final = 5
"""Minimum number of measured steps for an answer: of fewer, a better one may be missing."""


def choice(facts: StudyFacts) -> PageTable:
    """The variant to take by requests, misses and pool of the default grid, with the cost of a
    layer. It is never slower than the published way; of fewer than MIN_STEPS, none is taken."""
    usual = {case.id for case in facts.study.variant(PUBLISHED_WAY).in_grid("default")}
    cells = _usual(facts)
    cells = cells[cells["case"].isin(usual) & cells["variant"].isin(HOT_SET.offered)]
    rows: list[list[object]] = []
    groups: Any = cells[cells["verified"] == 1].groupby(["requests", "pool_mib", "misses"])
    for ((requests, pool, misses), steps), here in product(groups, situations_of(facts, HOT_SET)):
        steps = steps[steps["machine"] == here.machine]
        if steps.empty:
            continue
        place = f"{whole(requests)}, {whole(misses)}, {binary(pool * 2**20)}"
        row: list[object] = [place, facts.inputs.called(here.machine)]
        ways = dict(zip(steps["variant"], steps["median"], strict=True))
        published, point = ways.get(PUBLISHED_WAY, 0.0), (int(requests),)
        quick = {way: time for way, time in ways.items() if time <= published}
        found = replace(here, times={point: quick}).answer(point)
        if found is None or len(ways) < MIN_STEPS:
            what = f"not measured: {len(ways)} of {len(HOT_SET.offered)} steps"
            rows.append([*row, what, *["not measured"] * 2])
            continue
        (seconds,), (least,) = found.seconds[found.way], found.seconds[found.fastest]
        slower = Markup("<br>{} slower than {}").format(
            percent(seconds / least - 1), _way(found.fastest)
        )
        gain = f"{ratio(published / seconds)} faster"
        row += [_way(found.way) + slower * (found.fastest != found.way), quantity(seconds, "s")]
        rows.append([*row, gain if found.way != PUBLISHED_WAY else "none: it is that step"])
    columns = ["requests, misses, pool", "machine", "use", "time of a layer"]
    columns.append("speed-up over a block per request")
    return PageTable(columns, rows, NOT_MEASURED, columns[3:])


def _way(name: str) -> Markup:
    """The variant's name as a link to its step."""
    parts = Markup("_<wbr>").join(name.split("_"))
    return Markup('<a href="#{}"><code>{}</code></a>').format(name, parts)


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


TABLES: Final = {"choice": choice, "hit_rates": hit_rates}
