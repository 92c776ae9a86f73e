"""Tables of the page: what to take, what it costs, and when a hot set pays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from markupsafe import Markup

from analysis.api.charts import PageTable, StudyFacts
from analysis.api.quantities import quantity, ratio, whole
from analysis.api.tables import answer

from .cells import (
    FETCH_ALL,
    PUBLISHED_WAY,
    SCATTERED,
    Cell,
    Place,
    break_even_misses,
    by_place,
    case_of,
    cells,
    fastest,
    of_variants,
    step_names,
)
from .choosing import MODEL_LAYERS, graphs, point_of, steps_of, times_by_machine
from .graph_table import added_times
from .policy_results import COMPARED, policy_results
from .share_table import repeated_shares, shares

NOT_MEASURED: Final = "No machine has measured these cases yet."


def choice(facts: StudyFacts) -> PageTable:
    """The variant to take by requests, misses and pool, with the cost of a layer and of a model.

    It has the cases of the default grid, and the form of `widgets.py` all that are measured.
    """
    default = {case.id for variant in facts.study.variants for case in variant.in_grid("default")}
    by_point = {
        (cell.place.machine, point_of(cell)): cell
        for cell in cells(facts)
        if cell.place.layers == 1 and case_of(cell) in default
    }
    graph, rows = graphs(facts), []
    for machine, times in times_by_machine(facts).items():
        for point in sorted(times):
            found = answer(times, step_names(facts), point)
            cell = by_point.get((machine, point))
            if found is None or cell is None:
                continue
            (seconds,), (published,) = found.seconds[found.way], found.seconds[PUBLISHED_WAY]
            layers = graph.get((machine, point))
            rows.append(
                [
                    *_where(facts, cell),
                    _way(facts, found.way),
                    quantity(seconds, "s"),
                    ratio(published / seconds),
                    quantity(MODEL_LAYERS * seconds, "s"),
                    _graph(facts, layers) if layers else "",
                ]
            )
    columns = [*_WHERE, "use", "time of a layer", "speed over a block per request"]
    columns += [f"{MODEL_LAYERS} layers, one by one", f"{MODEL_LAYERS} layers in one graph"]
    return PageTable(columns, rows, NOT_MEASURED, numeric=columns[1:4] + columns[5:8])


def hit_rates(facts: StudyFacts) -> PageTable:
    """The hit rate from which a hot set is faster than fetching all rows of every step."""
    found = [cell for cell in cells(facts) if cell.place.layout == SCATTERED]
    curves = dict(by_place(fastest(steps_of(facts, found))))
    rows = []
    for cell in fastest(of_variants(found, [FETCH_ALL])):
        place, every = cell.place, cell.place.requests * cell.place.topk
        if cell.misses == every and len(curve := curves.get(place, [])) > 1:
            where = [facts.inputs.called(place.machine), whole(place.requests), _pool(place)]
            rows.append(
                [
                    *where,
                    quantity(cell.seconds, "s"),
                    _span(curve),
                    _from(facts, curve, cell.seconds, every),
                ]
            )
    columns = ["machine", "requests", "pool", "all rows, by the SMs alone", "hot set"]
    columns += ["hot set is faster"]
    return PageTable(columns, rows, NOT_MEASURED, numeric=columns[1:5])


def blocks(facts: StudyFacts) -> PageTable:
    """The cost of the pool's layout: rows anywhere, in blocks of an engine, or all together."""
    names = [FETCH_ALL, *step_names(facts)]
    found = [cell for cell in of_variants(cells(facts), names) if cell.place.layers == 1]
    largest = max((cell.place.pool_mib for cell in found), default=0)
    layouts = {cell.place.layout for cell in found} - {SCATTERED}
    rows = []
    for cell in found:
        apart = _scattered(found, cell)
        if cell.place.layout in layouts and cell.place.pool_mib == largest and apart:
            rows.append(
                [
                    *_where(facts, cell),
                    cell.place.layout,
                    _way(facts, cell.variant),
                    quantity(cell.seconds, "s"),
                    ratio(apart.seconds / cell.seconds),
                ]
            )
    columns = [*_WHERE, "layout", "variant", "a layer", "speed over scattered rows"]
    return PageTable(columns, rows, NOT_MEASURED, numeric=[*columns[1:4], *columns[6:]])


def policies(facts: StudyFacts) -> PageTable:
    """Bytes that each policy fetches, and the time that the optimum would save in a step."""
    rows = [
        [
            facts.inputs.called(one.machine),
            *(one.trace, whole(one.slots), quantity(one.optimum, "B")),
            *(ratio(one.over_optimum(policy)) for policy in COMPARED),
            quantity(seconds, "s") if (seconds := one.seconds_over_optimum("lru")) else "",
        ]
        for one in policy_results(facts)
    ]
    columns = ["machine", "trace", "slots", "optimum, a step"]
    columns += [f"{policy} over it" for policy in COMPARED.values()]
    columns += ["time of LRU over it"]
    return PageTable(columns, rows, "No machine has compared the policies yet.", columns[2:])


TABLES: Final[Mapping[str, Callable[[StudyFacts], PageTable]]] = {
    "choice": choice,
    "hit_rates": hit_rates,
    "blocks": blocks,
    "policies": policies,
    "shares": shares,
    "repeated_shares": repeated_shares,
    "added_times": added_times,
}

_WHERE: Final = ("machine", "requests", "misses", "pool")


def _where(facts: StudyFacts, cell: Cell) -> list[str]:
    place = cell.place
    return [
        *(facts.inputs.called(place.machine), whole(place.requests)),
        *(whole(cell.misses), _pool(place)),
    ]


def _way(facts: StudyFacts, name: str) -> Markup:
    """The variant's title, and its name as a link to its step."""
    title = facts.study.variant(name).title
    return Markup('{} (<a href="#{}"><code>{}</code></a>)').format(title, name, name)


def _graph(facts: StudyFacts, cell: Cell) -> Markup:
    return Markup("{}: {}").format(quantity(cell.seconds, "s"), _way(facts, cell.variant))


def _pool(place: Place) -> str:
    return f"{place.pool_mib / 1024:.3g} GiB"


def _span(curve: list[Cell]) -> str:
    """The times of a curve from its fewest to its most misses."""
    ends = curve[0], curve[-1]
    return " to ".join(quantity(cell.seconds, "s") for cell in ends)


def _from(facts: StudyFacts, curve: list[Cell], seconds: float, every: int) -> str:
    """The hit rate from which the hot set of `curve` takes less than `seconds`."""
    if curve[0].seconds > seconds:
        return f"at no measured hit rate, up to {_hit_rate(curve[0].misses, every)}"
    misses = break_even_misses(curve, seconds)
    if misses is None:
        lowest, title = curve[-1].misses, facts.study.variant(curve[-1].variant).title
        return f"at every measured hit rate, down to {_hit_rate(lowest, every)} ({title})"
    return f"above {_hit_rate(misses, every)}"


def _hit_rate(misses: float, every: int) -> str:
    return f"{100 * (1 - misses / every):.1f} %"


def _scattered(found: list[Cell], cell: Cell) -> Cell | None:
    """The same variant's cell with scattered rows."""
    place = replace(cell.place, layout=SCATTERED)
    alike = (one for one in found if (one.place, one.variant) == (place, cell.variant))
    return next((one for one in alike if one.misses == cell.misses), None)
