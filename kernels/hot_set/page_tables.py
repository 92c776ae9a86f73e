"""Tables of the page: what to take, what it costs, and when a hot set pays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import isnan
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
    case_of,
    cells,
    fastest,
    of_variants,
    pool_text,
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
            fastest_way, (least,) = next(iter(found.seconds.items()))
            layers = graph.get((machine, point))
            rows.append(
                [
                    *_where(facts, cell),
                    _way(found.way),
                    quantity(seconds, "s"),
                    "" if found.way == fastest_way else _timed(fastest_way, least),
                    ratio(published / seconds),
                    quantity(MODEL_LAYERS * seconds, "s"),
                    _timed(layers.variant, layers.seconds) if layers else "",
                ]
            )
    columns = [*_WHERE, "use", "time of a layer", "the fastest, if another"]
    columns += ["speed over a block per request", f"{MODEL_LAYERS} layers, one by one"]
    columns += [f"{MODEL_LAYERS} layers in one graph"]
    return PageTable(columns, rows, NOT_MEASURED, [*columns[1:4], *columns[5:6], *columns[7:9]])


def hit_rates(facts: StudyFacts) -> PageTable:
    """The time with a hot set by its hit rate beside that of all rows, on every machine. One is
    faster if the intervals of the two times are apart; cells without an interval are left out."""
    found = [cell for cell in cells(facts) if not isnan(cell.low)]
    found = [cell for cell in found if cell.place.layout == SCATTERED]
    all_rows = {
        cell.place: cell
        for cell in of_variants(found, [FETCH_ALL])
        if cell.misses == cell.place.requests * cell.place.topk
    }
    rows: dict[tuple[Place, int], dict[str, str]] = defaultdict(dict)
    for cell in fastest(steps_of(facts, found)):
        if (other := all_rows.get(cell.place)) is not None:
            machine = facts.inputs.called(cell.place.machine)
            row = rows[replace(cell.place, machine=""), cell.misses]
            row[f"all rows, {machine}"] = quantity(other.seconds, "s")
            row[f"hot set, {machine}"] = f"{quantity(cell.seconds, 's')}, {_verdict(cell, other)}"
    columns = [*dict.fromkeys(column for row in rows.values() for column in row)]
    written = [
        [
            *(whole(place.requests), pool_text(place.pool_mib), whole(place.layers)),
            f"{100 * (1 - misses / (place.requests * place.topk)):.1f} %",
            *(row.get(column, "") for column in columns),
        ]
        for (place, misses), row in sorted(rows.items())
    ]
    columns = ["requests", "pool", "layers", "hit rate", *columns]
    return PageTable(columns, written, NOT_MEASURED, numeric=columns)


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
                    _way(cell.variant),
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
        *(whole(cell.misses), pool_text(place.pool_mib)),
    ]


def _way(name: str) -> Markup:
    """The variant's name as a link to its step."""
    return Markup('<a href="#{}"><code>{}</code></a>').format(name, name)


def _timed(name: str, seconds: float) -> Markup:
    return Markup("{}: {}").format(quantity(seconds, "s"), _way(name))


def _verdict(cell: Cell, other: Cell) -> str:
    """`faster`, `slower` or, if the intervals overlap, `undecided`."""
    if cell.high < other.low:
        return "faster"
    return "slower" if cell.low > other.high else "undecided"


def _scattered(found: list[Cell], cell: Cell) -> Cell | None:
    """The same variant's cell with scattered rows."""
    place = replace(cell.place, layout=SCATTERED)
    alike = (one for one in found if (one.place, one.variant) == (place, cell.variant))
    return next((one for one in alike if one.misses == cell.misses), None)
