"""Tables of the page: what to take, what it costs, and when a hot set pays."""

from __future__ import annotations

from typing import Final

import numpy as np
from markupsafe import Markup

from analysis.api.charts import PageTable, StudyFacts, situations_of
from analysis.api.quantities import binary, quantity, ratio, whole

from .answers import HOT_SET, PUBLISHED_WAY
from .cells import FETCH_ALL, scattered, step_names

NOT_MEASURED: Final = "No machine has measured these cases yet."


def choice(facts: StudyFacts) -> PageTable:
    """The variant to take by requests, misses and pool, with the cost of a layer."""
    rows = []
    for here in situations_of(facts, HOT_SET):
        for point in sorted(here.times):
            found = here.answer(point)
            assert found is not None, "a measured point has an answer"
            (seconds,), (published,) = found.seconds[found.way], found.seconds[PUBLISHED_WAY]
            (least,) = found.seconds[found.fastest]
            requests, pool, misses = point
            other = Markup("{}: {}").format(quantity(least, "s"), _way(found.fastest))
            row = [facts.inputs.called(here.machine), whole(requests), whole(misses), binary(pool)]
            row += [_way(found.way), quantity(seconds, "s")]
            row += [other * (found.fastest != found.way), ratio(published / seconds)]
            rows.append([*row, whole(len(found.seconds))])
    columns = ["machine", "requests", "misses", "pool", "use", "time of a layer"]
    columns += ["the fastest, if another", "speed over a block per request", "ways measured"]
    return PageTable(columns, rows, NOT_MEASURED, [*columns[1:4], columns[5], *columns[7:]])


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
