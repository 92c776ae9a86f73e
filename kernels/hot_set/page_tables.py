"""Tables of the page: what to take, what it costs, and when a hot set pays."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from statistics import median
from typing import Any, Final

import pandas as pd
from markupsafe import Markup

from analysis.api.charts import RUN_SEPARATOR, PageTable, StudyFacts, fresh_figures
from analysis.api.quantities import percent, quantity, ratio, whole
from analysis.api.tables import answer

from .cells import (
    CLOCK,
    CURVE,
    FETCH_ALL,
    MODEL_LAYERS,
    PLACE,
    PUBLISHED_WAY,
    SCATTERED,
    answerable,
    break_even_misses,
    cells,
    fastest,
    of_variants,
    pool_text,
    scattered_steps,
    step_names,
    times_by_machine,
)

NOT_MEASURED: Final = "No machine has measured these cases yet."
WHERE: Final = ("machine", "requests", "misses", "pool")
DEVICE_CLOCK: Final = "gpu_time"
GRAPH_STEPS: Final = (PUBLISHED_WAY, "lookup_ready", "dependent_launch")
"""A block per request, the look-up prepared before the ids, and layers that start early as well."""
SHARING: Final = "both_on_request"
WITHIN: Final = 0.05
"""A share is a hit if its time exceeds the shortest one by at most this."""


def choice(facts: StudyFacts) -> PageTable:
    """The variant to take by requests, misses and pool, with the cost of a layer and of a model.

    It has the cases of the default grid, and the form of `widgets.py` all that are measured.
    """
    default = [case.id for variant in facts.study.variants for case in variant.in_grid("default")]
    one, all_layers = answerable(facts, 1), fastest(answerable(facts, MODEL_LAYERS))
    usual = one[one["case"].isin(default)]
    known = {*zip(usual["machine"], usual["point"], strict=True)}
    graphs = {(row["machine"], row["point"]): row for row in all_layers.to_dict("records")}
    rows = []
    for machine, times in times_by_machine(facts).items():
        for point in sorted(times):
            found = answer(times, step_names(facts), point)
            if found is None or (machine, point) not in known:
                continue
            (seconds,), (published,) = found.seconds[found.way], found.seconds[PUBLISHED_WAY]
            requests, pool, misses = point
            row = [facts.inputs.called(machine), whole(requests), whole(misses)]
            row += [pool_text(pool / 2**20), _way(facts, found.way), quantity(seconds, "s")]
            row += [ratio(published / seconds), quantity(MODEL_LAYERS * seconds, "s")]
            graph = graphs.get((machine, point))
            rows.append([*row, _graph(facts, graph) if graph else ""])
    columns = [*WHERE, "use", "time of a layer", "speed over a block per request"]
    columns += [f"{MODEL_LAYERS} layers, one by one", f"{MODEL_LAYERS} layers in one graph"]
    return PageTable(columns, rows, NOT_MEASURED, numeric=columns[1:4] + columns[5:8])


def _way(facts: StudyFacts, name: str) -> Markup:
    """The variant's title, and its name as a link to its step."""
    title = facts.study.variant(name).title
    return Markup('{} (<a href="#{}"><code>{}</code></a>)').format(title, name, name)


def _graph(facts: StudyFacts, cell: Mapping[Hashable, Any]) -> Markup:
    return Markup("{}: {}").format(quantity(cell["seconds"], "s"), _way(facts, cell["variant"]))


def hit_rates(facts: StudyFacts) -> PageTable:
    """The hit rate from which a hot set is faster than fetching all rows of every step."""
    curves = dict(list(fastest(scattered_steps(facts)).groupby(PLACE)))
    found = of_variants(cells(facts), [FETCH_ALL]).sort_values(CURVE)
    is_all = found["misses"] == found["requests"] * found["topk"]
    rows = []
    for cell in found[is_all & (found["layout"] == SCATTERED)].to_dict("records"):
        curve = curves.get(tuple(cell[key] for key in PLACE))
        if curve is not None and len(curve) > 1:
            row = [facts.inputs.called(cell["machine"]), whole(cell["requests"])]
            row += [pool_text(cell["pool_mib"]), quantity(cell["seconds"], "s")]
            row += [" to ".join(quantity(curve["seconds"].iloc[end], "s") for end in (0, -1))]
            rows.append([*row, _pays(facts, curve, cell["seconds"], cell["misses"])])
    columns = ["machine", "requests", "pool", "all rows, by the SMs alone", "hot set"]
    columns += ["hot set is faster"]
    return PageTable(columns, rows, NOT_MEASURED, numeric=columns[1:5])


def _pays(facts: StudyFacts, curve: pd.DataFrame, seconds: float, every: int) -> str:
    """The hit rate from which the hot set of `curve` takes less than `seconds`."""

    def hit_rate(misses: float) -> str:
        return f"{100 * (1 - misses / every):.1f} %"

    first, last = curve.iloc[0], curve.iloc[-1]
    if first["seconds"] > seconds:
        return f"at no measured hit rate, up to {hit_rate(first['misses'])}"
    if (misses := break_even_misses(curve, seconds)) is None:
        title = facts.study.variant(last["variant"]).title
        return f"at every measured hit rate, down to {hit_rate(last['misses'])} ({title})"
    return f"above {hit_rate(misses)}"


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
            *(whole(cell["misses"]), pool_text(cell["pool_mib"]), cell["layout"]),
            *(_way(facts, cell["variant"]), quantity(cell["seconds"], "s")),
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
        row += [pool_text(cell["pool_mib"]), quantity(alone, "s")]
        row += [quantity(cell[step] - alone, "s") for step in GRAPH_STEPS]
        rows.append([*row, ratio(cell["fastest"] / alone)])
    columns = ["machine", "misses", "pool", "misses alone", "a block per request adds"]
    columns += ["look-up made ready adds", "and started early adds", "fastest over misses alone"]
    return PageTable(columns, rows, "No machine has measured these graphs yet.", columns[1:])


def repeated_shares(facts: StudyFacts) -> PageTable:
    """Hits of the chosen share, and of the share that was the best one in the other runs, by
    machine. Each run of each case counts once."""
    found = fresh_figures(facts, CLOCK)
    found = found[found["variant"] == SHARING]
    found = found.assign(within=[case.partition(",share_32nds=")[0] for case in found["case"]])
    rows = []
    for machine, of_machine in found.groupby("machine", sort=False):
        losses = [loss for _, case in of_machine.groupby("within") for loss in _losses(case)]
        if losses:
            kinds = zip(*losses, strict=True)
            figures = [text for of in kinds for text in (_hits(of), ratio(median(of)))]
            rows.append([facts.inputs.called(str(machine)), whole(len(losses)), *figures])
    columns = ["machine", "runs of cases", "chosen share: hits", "median time over the best"]
    columns += ["best share of the other runs: hits", "its median time over the best"]
    return PageTable(columns, rows, "No machine has repeated these cases yet.", columns[1:])


def _losses(case: pd.DataFrame) -> Iterator[tuple[float, float]]:
    """Per run of one case, the time over the best share's: with the chosen share, and with the one
    that has the shortest median in the other runs."""
    by_run = case["by_run"].map(lambda runs: [float(run) for run in runs.split(RUN_SEPARATOR)])
    is_given = case["share_32nds"].notna()
    chosen, given = by_run[~is_given].tolist(), by_run[is_given].tolist()
    counts = {len(times) for times in by_run}
    if not chosen or not given or len(counts) > 1 or max(counts) < 2:
        return
    for run, of_chosen in enumerate(chosen[0]):
        best = min(times[run] for times in given)
        repeated = min(given, key=lambda times: median(times[:run] + times[run + 1 :]))
        yield of_chosen / best, repeated[run] / best


def _hits(losses: tuple[float, ...]) -> str:
    return percent(sum(loss <= 1 + WITHIN for loss in losses) / len(losses))


TABLES: Final = {
    "choice": choice,
    "hit_rates": hit_rates,
    "blocks": blocks,
    "repeated_shares": repeated_shares,
    "added_times": added_times,
}
