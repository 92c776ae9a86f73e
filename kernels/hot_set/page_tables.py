"""Tables of the page: what to take, what it costs, and when a hot set pays."""

from __future__ import annotations

from itertools import product
from typing import Final

import numpy as np
from markupsafe import Markup

from analysis.api.charts import PageTable, StudyFacts
from analysis.api.quantities import binary, quantity, ratio, whole
from analysis.api.tables import answer

from .cells import (
    FETCH_ALL,
    PUBLISHED_WAY,
    SCATTERED,
    USUAL_KEYS,
    scattered,
    step_names,
    times_by_machine,
)

NOT_MEASURED: Final = "No machine has measured these cases yet."
MIN_STEPS: Final = 5
"""Minimum number of measured steps for an answer: of fewer, a better one may be missing."""


def choice(facts: StudyFacts) -> PageTable:
    """The variant to take by requests, misses and pool of the default grid, with the cost of a
    layer. It is never slower than the published way; of fewer than MIN_STEPS, none is taken."""
    steps, rows = step_names(facts), []
    by_machine = times_by_machine(facts)
    cells = [case.values for case in facts.study.variant(PUBLISHED_WAY).in_grid("default")]
    points = {
        (int(case["requests"]), int(case["pool_mib"]) * 2**20, int(case["misses"]))
        for case in cells
        if case.keys() == {*USUAL_KEYS} and case["layout"] == SCATTERED
    }
    for point, (machine, times) in product(sorted(points), by_machine.items()):
        if not (ways := times.get(point)):
            continue
        requests, pool, misses = point
        row: list[object] = [whole(requests), whole(misses), binary(pool)]
        row.append(facts.inputs.called(machine))
        published = ways[PUBLISHED_WAY]
        found = answer({point: {w: s for w, s in ways.items() if s <= published}}, steps, point)
        if found is None or len(ways) < MIN_STEPS:
            rows.append([*row, f"not measured: {len(ways)} of {len(steps)} steps", *3 * [""]])
            continue
        (seconds,), (fastest, (least,)) = (
            found.seconds[found.way],
            next(iter(found.seconds.items())),
        )
        other = Markup("{}: {}").format(quantity(least, "s"), _way(fastest))
        row += [_way(found.way), quantity(seconds, "s"), other * (fastest != found.way)]
        rows.append([*row, f"{ratio(published / seconds)} faster" * (found.way != PUBLISHED_WAY)])
    columns = ["requests", "misses", "pool", "machine", "use", "time of a layer"]
    columns += ["the fastest, if another", "speed-up over a block per request"]
    return PageTable(columns, rows, NOT_MEASURED, [*columns[:3], columns[5], columns[7]])


def _way(name: str) -> Markup:
    """The variant's name as a link to its step."""
    return Markup('<a href="#{}"><code>{}</code></a>').format(name, name)


def hit_rates(facts: StudyFacts) -> PageTable:
    """The time with a hot set, by the fastest step, beside that of all rows. One is faster if the
    intervals of the two times are apart; cells without an interval are left out."""
    cells = scattered(facts).dropna(subset="ci_low").sort_values("seconds", kind="stable")
    every = cells[cells["variant"] == FETCH_ALL]
    every = every[every["misses"] == every["requests"] * every["topk"]]
    place = ["machine", "requests", "pool_mib", "topk", "slots"]
    steps = cells[cells["variant"].isin(step_names(facts))].drop_duplicates([*place, "misses"])
    found = steps.merge(every, on=place, suffixes=("", "_all")).sort_values([*place, "misses"])
    apart = [found["ci_high"] < found["ci_low_all"], found["ci_low"] > found["ci_high_all"]]
    found = found.assign(verdict=np.select(apart, ["faster", "slower"], "undecided"))
    rows = [
        [
            *(facts.inputs.called(cell["machine"]), whole(cell["requests"])),
            binary(cell["pool_mib"] * 2**20),
            f"{100 * (1 - cell['misses'] / (cell['requests'] * cell['topk'])):.1f} %",
            *(quantity(cell["seconds_all"], "s"), quantity(cell["seconds"], "s"), cell["verdict"]),
        ]
        for cell in found.to_dict("records")
    ]
    columns = ["machine", "requests", "pool", "hit rate", "all rows", "hot set", "a hot set is"]
    return PageTable(columns, rows, NOT_MEASURED, numeric=columns[1:-1])


TABLES: Final = {"choice": choice, "hit_rates": hit_rates}
