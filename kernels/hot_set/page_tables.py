"""Tables of the page: what to take, what it costs, and when a hot set pays."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

import numpy as np
from markupsafe import Markup

from analysis.api.charts import PageTable, StudyFacts
from analysis.api.quantities import binary, quantity, ratio, whole
from analysis.api.tables import answer

from .cells import (
    CURVE,
    FETCH_ALL,
    MODEL_LAYERS,
    PLACE,
    PUBLISHED_WAY,
    SCATTERED,
    answerable,
    cells,
    fastest,
    of_variants,
    scattered_steps,
    step_names,
    times_by_machine,
)

NOT_MEASURED: Final = "No machine has measured these cases yet."
WHERE: Final = ("machine", "requests", "misses", "pool")
DEVICE_CLOCK: Final = "gpu_time"
GRAPH_STEPS: Final = (PUBLISHED_WAY, "lookup_ready", "dependent_launch")
"""A block per request, the look-up prepared before the ids, and layers that start early as well."""


def choice(facts: StudyFacts) -> PageTable:
    """The variant to take by requests, misses and pool, with the cost of a layer and of a model.

    It has the cases of the default grid, and the form of `widgets.py` all that are measured.
    """
    default = [case.id for variant in facts.study.variants for case in variant.in_grid("default")]
    one, all_layers = answerable(facts, 1), fastest(answerable(facts, MODEL_LAYERS))
    usual = one[one["case"].isin(default)]
    known = {*zip(usual["machine"], usual["point"], strict=True)}
    graphs = {
        (row["machine"], row["point"]): (row["variant"], row["seconds"])
        for row in all_layers.to_dict("records")
    }
    rows = []
    for machine, times in times_by_machine(facts).items():
        for point in sorted(times):
            found = answer(times, step_names(facts), point)
            if found is None or (machine, point) not in known:
                continue
            (seconds,), (published,) = found.seconds[found.way], found.seconds[PUBLISHED_WAY]
            fastest_way, (least,) = next(iter(found.seconds.items()))
            requests, pool, misses = point
            row = [facts.inputs.called(machine), whole(requests), whole(misses), binary(pool)]
            row += [_way(found.way), quantity(seconds, "s")]
            row += ["" if found.way == fastest_way else _timed(fastest_way, least)]
            row += [ratio(published / seconds), quantity(MODEL_LAYERS * seconds, "s")]
            graph = graphs.get((machine, point))
            rows.append([*row, _timed(*graph) if graph else ""])
    columns = [*WHERE, "use", "time of a layer", "the fastest, if another"]
    columns += ["speed over a block per request", f"{MODEL_LAYERS} layers, one by one"]
    columns += [f"{MODEL_LAYERS} layers in one graph"]
    return PageTable(columns, rows, NOT_MEASURED, [*columns[1:4], *columns[5:6], *columns[7:9]])


def _way(name: str) -> Markup:
    """The variant's name as a link to its step."""
    return Markup('<a href="#{}"><code>{}</code></a>').format(name, name)


def _timed(name: str, seconds: float) -> Markup:
    return Markup("{}: {}").format(quantity(seconds, "s"), _way(name))


def hit_rates(facts: StudyFacts) -> PageTable:
    """The time with a hot set by its hit rate beside that of all rows, on every machine. One is
    faster if the intervals of the two times are apart; cells without an interval are left out."""
    every = of_variants(cells(facts), [FETCH_ALL])
    every = every[every["misses"] == every["requests"] * every["topk"]].dropna(subset="ci_low")
    found = fastest(scattered_steps(facts).dropna(subset="ci_low"))
    found = found.merge(every, on=PLACE, suffixes=("", "_all"))
    found = found.assign(
        verdict=np.select(
            [found["ci_high"] < found["ci_low_all"], found["ci_low"] > found["ci_high_all"]],
            ["faster", "slower"],
            "undecided",
        )
    )
    texts: dict[tuple[Any, ...], dict[str, str]] = defaultdict(dict)
    for cell in found.to_dict("records"):
        machine = facts.inputs.called(cell["machine"])
        row = texts[tuple(cell[key] for key in CURVE if key != "machine")]
        row[f"all rows, {machine}"] = quantity(cell["seconds_all"], "s")
        row[f"hot set, {machine}"] = f"{quantity(cell['seconds'], 's')}, {cell['verdict']}"
    columns = list(dict.fromkeys(column for row in texts.values() for column in row))
    rows = [
        [
            *(whole(requests), binary(mib * 2**20), whole(layers)),
            f"{100 * (1 - misses / (requests * topk)):.1f} %",
            *(row.get(column, "") for column in columns),
        ]
        for (requests, topk, _, mib, _, layers, misses), row in sorted(texts.items())
    ]
    columns = ["requests", "pool", "layers", "hit rate", *columns]
    return PageTable(columns, rows, NOT_MEASURED, numeric=columns)


def blocks(facts: StudyFacts) -> PageTable:
    """The cost of the pool's layout: rows anywhere, in blocks of an engine, or all together."""
    found = of_variants(cells(facts), [FETCH_ALL, *step_names(facts)])
    found = found[(found["layers"] == 1) & (found["pool_mib"] == found["pool_mib"].max())]
    key = [*(name for name in CURVE if name != "layout"), "variant"]
    scattered = found[found["layout"] == SCATTERED].set_index(key)["seconds"].rename("scattered")
    found = found[found["layout"] != SCATTERED].join(scattered, on=key, how="inner")
    rows = [
        [
            *(facts.inputs.called(cell["machine"]), whole(cell["requests"])),
            *(whole(cell["misses"]), binary(cell["pool_mib"] * 2**20), cell["layout"]),
            *(_way(cell["variant"]), quantity(cell["seconds"], "s")),
            ratio(cell["scattered"] / cell["seconds"]),
        ]
        for cell in found.to_dict("records")
    ]
    columns = [*WHERE, "layout", "variant", "a layer", "speed over scattered rows"]
    return PageTable(columns, rows, NOT_MEASURED, numeric=[*columns[1:4], *columns[6:]])


def added_times(facts: StudyFacts) -> PageTable:
    """Device time per layer of the misses alone, and what each step adds to it, by machine and
    number of misses."""
    names = [FETCH_ALL, *step_names(facts)]
    found = of_variants(cells(facts, DEVICE_CLOCK), names)
    found = found[found["layers"] > 1]
    found = found.assign(per_layer=found["seconds"] / found["layers"])
    times = found.pivot_table(index=CURVE, columns="variant", values="per_layer")
    times = times.reindex(columns=names)
    times = times[times[FETCH_ALL].notna() & times[[*GRAPH_STEPS]].notna().any(axis=1)]
    rows = []
    fastest_step = times.drop(columns=FETCH_ALL).min(axis=1)
    for cell in times.assign(fastest=fastest_step).reset_index().to_dict("records"):
        alone = cell[FETCH_ALL]
        row = [facts.inputs.called(cell["machine"]), whole(cell["misses"])]
        row += [binary(cell["pool_mib"] * 2**20), quantity(alone, "s")]
        row += [quantity(cell[step] - alone, "s") for step in GRAPH_STEPS]
        rows.append([*row, ratio(cell["fastest"] / alone)])
    columns = ["machine", "misses", "pool", "misses alone", "a block per request adds"]
    columns += ["look-up made ready adds", "and started early adds", "fastest over misses alone"]
    return PageTable(columns, rows, "No machine has measured these graphs yet.", columns[1:])


TABLES: Final = {
    "choice": choice,
    "hit_rates": hit_rates,
    "blocks": blocks,
    "added_times": added_times,
}
