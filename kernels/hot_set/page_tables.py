"""Tables of the page: what to take, what it costs, and when a hot set pays."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Final

import numpy as np
from markupsafe import Markup

from analysis.api.charts import PageTable, StudyFacts, fresh_figures, situations_of
from analysis.api.quantities import binary, percent, quantity, ratio, whole

from .answers import HOT_SET, PUBLISHED_WAY, places
from .charts import FETCH_ALL, SCATTERED, USUAL_KEYS

NOT_MEASURED: Final = "No machine has measured these cases yet."
MIN_STEPS: Final = 5
"""Minimum number of measured steps for an answer: of fewer, a better one may be missing."""


def choice(facts: StudyFacts) -> PageTable:
    """The variant to take by requests, misses and pool of the default grid, with the cost of a
    layer. It is never slower than the published way; of fewer than MIN_STEPS, none is taken."""
    cells = facts.study.variant(PUBLISHED_WAY).in_grid("default")
    usual = {
        tuple(int(place[axis.name]) for axis in HOT_SET.axes)
        for case in cells
        for place in places(PUBLISHED_WAY, case.values)
    }
    rows: list[list[object]] = []
    for point, here in product(sorted(usual), situations_of(facts, HOT_SET)):
        if not (times := here.times.get(point)):
            continue
        requests, pool, misses = point
        place = f"{whole(requests)}, {whole(misses)}, {binary(pool)}"
        row: list[object] = [place, facts.inputs.called(here.machine)]
        published = times[PUBLISHED_WAY]
        ways = {way: times[way] for way in HOT_SET.offered if way in times}
        quick = {way: time for way, time in ways.items() if time <= published}
        found = replace(here, times={point: quick}).answer(point)
        if found is None or len(ways) < MIN_STEPS:
            what = f"not measured: {len(ways)} of {len(HOT_SET.offered)} steps"
            rows.append([*row, what, "", ""])
            continue
        (seconds,), (least,) = found.seconds[found.way], found.seconds[found.fastest]
        slower = Markup("<br>{} slower than {}").format(
            percent(seconds / least - 1), _way(found.fastest)
        )
        row += [_way(found.way) + slower * (found.fastest != found.way), quantity(seconds, "s")]
        rows.append([*row, f"{ratio(published / seconds)} faster" * (found.way != PUBLISHED_WAY)])
    columns = ["requests, misses, pool", "machine", "use", "time of a layer"]
    columns.append("speed-up over a block per request")
    return PageTable(columns, rows, NOT_MEASURED, columns[3:])


def _way(name: str) -> Markup:
    """The variant's name as a link to its step."""
    parts = Markup("_<wbr>").join(name.split("_"))
    return Markup('<a href="#{}"><code>{}</code></a>').format(name, parts)


def hit_rates(facts: StudyFacts) -> PageTable:
    """The time with a hot set, by the fastest step, beside that of all rows. One is faster if the
    intervals of the two times are apart; cells without an interval are left out."""
    cells = fresh_figures(facts, "host_time")  # which includes the work of the CPU
    others = [*{*facts.study.case_keys} - {*USUAL_KEYS}]
    cells = cells[cells["layout"].eq(SCATTERED) & cells[others].isna().all(axis=1)]
    cells = cells.dropna(subset=[*USUAL_KEYS, "ci_low"]).sort_values("median", kind="stable")
    every = cells[cells["variant"] == FETCH_ALL]
    every = every[every["misses"] == every["requests"] * every["topk"]]
    place = ["machine", "requests", "pool_mib", "topk", "slots"]
    steps = cells[cells["variant"].isin(HOT_SET.offered)].drop_duplicates([*place, "misses"])
    found = steps.merge(every, on=place, suffixes=("", "_all")).sort_values([*place, "misses"])
    apart = [found["ci_high"] < found["ci_low_all"], found["ci_low"] > found["ci_high_all"]]
    found = found.assign(verdict=np.select(apart, ["faster", "slower"], "undecided"))
    rows = [
        [
            *(facts.inputs.called(cell["machine"]), whole(cell["requests"])),
            binary(cell["pool_mib"] * 2**20),
            f"{100 * (1 - cell['misses'] / (cell['requests'] * cell['topk'])):.1f} %",
            *(quantity(cell["median_all"], "s"), quantity(cell["median"], "s"), cell["verdict"]),
        ]
        for cell in found.to_dict("records")
    ]
    columns = ["machine", "requests", "pool", "hit rate", "all rows", "hot set", "a hot set is"]
    return PageTable(columns, rows, NOT_MEASURED, numeric=columns[1:-1])


TABLES: Final = {"choice": choice, "hit_rates": hit_rates}
