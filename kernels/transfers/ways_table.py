"""The table of all ways by size: the call to take first, then rate and cost of every way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from markupsafe import Markup

from analysis.api.charts import StudyFacts, machines_by_evidence
from analysis.api.drawings import PageTable
from analysis.api.quantities import quantity, whole
from analysis.api.study import Study

from .adviser import METRIC
from .chart_parts import binary
from .kinds import MEMORIES, memory_of, method_of
from .measured import moves

CALLER: Final = "submit_time"
"""The caller's cost: time until the call returns."""
PINNED: Final = "pinned"
LISTED: Final = "list_"
SCATTERED: Final = "scattered"
NOT_MEASURED: Final = "No machine has measured these ways yet."
WHERE: Final = ("pieces", "size", "number")
FIRST: Final = "call first"


@dataclass(frozen=True)
class Cell:
    """A number of pieces of one size and layout, on an idle stream.

    `times`: of each variant its row of the summary by metric
    """

    direction: str
    host: str
    device: str
    size: int
    count: int
    times: dict[str, dict[str, Mapping[str, Any]]] = field(default_factory=dict)

    @property
    def layout(self) -> str:
        """The layout in words; empty for one without rows in the table."""
        if self.count == 1:
            return "one block" if self.direction == "h2d" else "one block, to the host"
        layouts = {("pitched", "packed"): "evenly spaced", (SCATTERED, SCATTERED): SCATTERED}
        return layouts.get((self.host, self.device), "") if self.direction == "h2d" else ""

    @property
    def order(self) -> tuple[object, ...]:
        """Sorts one block first, scattered pieces last."""
        return self.count > 1, self.layout, self.size, self.count

    @property
    def ranked(self) -> list[str]:
        """Its ways from plain pinned memory, or all if there is none, fastest first. Other kinds of
        pinned memory are hardly faster, and more work to have."""
        pinned = [name for name in self.times if memory_of(name) == PINNED]
        return sorted(pinned or self.times, key=lambda name: self.times[name][METRIC]["median"])


def ways_table(facts: StudyFacts) -> PageTable:
    """A row for each cell of the default grid that the machine with most evidence has measured two
    ways of."""
    rows = moves(facts.study, facts.summary)
    measured = set(rows["machine"])
    machine = next((one for one in machines_by_evidence(facts) if one in measured), None)
    if machine is None:
        return PageTable([*WHERE, FIRST], [], NOT_MEASURED)
    usual = _usual(facts.study)
    cells = _cells(rows[rows["machine"] == machine].to_dict("records"))
    found = [cell for cell in cells if cell.layout and (cell.size, cell.count) in usual]
    ways = _columns({name for cell in found for name in cell.times})
    lines: list[list[object]] = [_row(cell, ways) for cell in found]
    if not any(cell.layout == SCATTERED for cell in found):
        lines.append([SCATTERED, "", "", "not measured yet", *("" for _ in ways)])
    columns = [*WHERE, f"{FIRST}, on {facts.inputs.called(machine)}", *ways]
    return PageTable(columns, lines, NOT_MEASURED, numeric=[*WHERE[1:], *ways])


def _usual(study: Study) -> set[tuple[int, int]]:
    """Sizes and numbers of pieces in the default grid: the full one has too many for a table."""
    return {
        (int(case["size"]), int(case["count"]))
        for variant in study.variants
        for case in variant.cases
        if case.grid == "default" and {"size", "count"} <= set(case.values)
    }


def _cells(rows: Sequence[Mapping[Any, Any]]) -> list[Cell]:
    """The cells of an idle stream with the host times of at least two ways, in their order."""
    cells: dict[tuple[Any, ...], Cell] = {}
    for row in rows:
        size, count = int(row["size"]), int(row["count"])
        is_list = method_of(row["variant"]).startswith(LISTED)
        if row["metric"] not in (METRIC, CALLER) or row["busy"]:
            continue
        # Ways for pieces of a list would have the columns of those for evenly spaced pieces.
        if is_list != (count > 1 and row["host"] == row["device"] == SCATTERED):
            continue
        # A single piece has no layout.
        host, device = (row["host"], row["device"]) if count > 1 else ("packed", "packed")
        key = row["direction"], host, device, size, count
        times = cells.setdefault(key, Cell(*key)).times
        times.setdefault(row["variant"], {})[row["metric"]] = row
    for cell in cells.values():
        for name in [name for name, known in cell.times.items() if METRIC not in known]:
            del cell.times[name]
    known = (cell for cell in cells.values() if len(cell.times) > 1)
    return sorted(known, key=lambda cell: cell.order)


def _columns(variants: set[str]) -> list[str]:
    """The ways of these variants, pinned memory first."""
    ways = {_way(name) for name in variants}

    def order(way: str) -> tuple[bool, int, str]:
        memory = memory_of(way)
        return memory != PINNED, MEMORIES.index(memory), way

    return sorted(ways, key=order)


def _way(variant: str) -> str:
    """The variant's kind of memory and call. A way that moves pieces of a list has the same column
    as the one for evenly spaced pieces: no cell has both."""
    return f"{memory_of(variant)}_{_call(variant)}"


def _row(cell: Cell, ways: Sequence[str]) -> list[object]:
    by_way = {_way(name): name for name in cell.times}
    figures = (_figure(cell, by_way[way]) if way in by_way else "" for way in ways)
    return [cell.layout, _link(cell), whole(cell.count), _first(cell), *figures]


def _first(cell: Cell) -> Markup:
    """The fastest way, and below it the calls that are not measurably slower."""
    best, *others = cell.ranked
    limit = cell.times[best][METRIC]["ci_high"]
    equal = [_call(name) for name in others if cell.times[name][METRIC]["ci_low"] <= limit]
    first = Markup("<code>{}</code>").format(best)
    return first + Markup("<br>or {}").format(", ".join(equal)) if equal else first


def _call(variant: str) -> str:
    return method_of(variant).removeprefix(LISTED)


def _figure(cell: Cell, variant: str) -> Markup:
    """The rate until all pieces have arrived, and below it the caller's cost."""
    times = cell.times[variant]
    rate = quantity(cell.size * cell.count / times[METRIC]["median"], "B/s")
    shown = Markup("<strong>{}</strong>") if variant == cell.ranked[0] else Markup("{}")
    parts = [shown.format(rate)]
    if CALLER in times:
        parts.append(Markup("{}").format(quantity(times[CALLER]["median"], "s")))
    return Markup("<br>").join(parts)


def _link(cell: Cell) -> Markup:
    """The size of a piece, as a link to the adviser with this choice."""
    asked = urlencode({f"adviser.{key}": value for key, value in _choice(cell)})
    address = f"../../what_to_call/?{asked}#widget-adviser"
    return Markup('<a href="{}">{}</a>').format(address, binary(cell.size))


def _choice(cell: Cell) -> Iterator[tuple[str, object]]:
    yield "size", binary(cell.size)
    yield "count", cell.count
    yield "direction", cell.direction
    yield "host", cell.host
    yield "device", cell.device
