"""The table of all ways by size: the call to take first, then rate and cost of every way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from urllib.parse import urlencode

from markupsafe import Markup

from analysis.api.charts import PageTable, StudyFacts, machines_by_evidence
from analysis.api.quantities import digits, quantity, runs_phrase, whole
from analysis.api.study import Study, parse_case

from .adviser import METRIC
from .chart_parts import binary
from .kinds import memory_of, method_of
from .measured import PIECE_KEYS, PLACE_KEYS, moves

CALLER: Final = "submit_time"
"""The caller's cost: time until the call returns."""
PINNED: Final = "pinned"
LISTED: Final = "list_"
SCATTERED: Final = "scattered"
LEAST_RATE: Final = 1e7
"""Lower rates, in B/s, are not shown in GB/s."""
ONE_BLOCK: Final = {
    ("h2d", "packed", "packed"): "one block",
    ("d2h", "packed", "packed"): "one block, to the host",
}
SEVERAL: Final = {
    ("h2d", SCATTERED, SCATTERED): SCATTERED,
    ("h2d", SCATTERED, "packed"): f"{SCATTERED} to packed",
    ("h2d", "pitched", "packed"): "evenly spaced",
}
LAYOUTS: Final = ("one block", *SEVERAL.values(), "one block, to the host")
"""In the order of the table."""
NOT_MEASURED: Final = "No machine has measured these ways yet."
WHERE: Final = ("pieces", "size", "number")
FIRST: Final = "fastest call"
RATE: Final = "GB/s"
COST: Final = "call returns after"
OTHERS: Final = "other calls: GB/s (call returns after)"
FIGURES: Final = (RATE, COST, OTHERS)
NUMERIC: Final = (*WHERE[1:], RATE, COST)
NO_BREAK: Final = "\u00a0"

Key: TypeAlias = tuple[str, str, str, int, int]
"""Direction, layout on the host and on the device, size and number of pieces."""


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
    def key(self) -> Key:
        return self.direction, self.host, self.device, self.size, self.count

    @property
    def layout(self) -> str:
        """The layout in words; empty for one without rows in the table."""
        place = (self.direction, self.host, self.device)
        return (ONE_BLOCK if self.count == 1 else SEVERAL).get(place, "")

    @property
    def order(self) -> tuple[int, int, int]:
        """Sorts by layout, in the order of LAYOUTS, then by size."""
        return LAYOUTS.index(self.layout), self.size, self.count

    @property
    def ranked(self) -> list[str]:
        """Its ways, the one to call first: the fastest from plain pinned memory, which is the least
        work to have, unless another is measurably faster. Then the others, fastest first."""
        fastest = sorted(self.times, key=self.seconds)
        pinned = [name for name in fastest if memory_of(name) == PINNED]
        first = fastest[0]
        if pinned and not self.is_apart(first, pinned[0]):
            first = pinned[0]
        return [first, *(name for name in fastest if name != first)]

    def seconds(self, variant: str) -> float:
        return float(self.times[variant][METRIC]["median"])

    def is_apart(self, fast: str, slow: str) -> bool:
        """Whether the intervals of two times do not overlap; False if one has no interval."""
        ends = float(self.times[fast][METRIC]["ci_high"]), float(self.times[slow][METRIC]["ci_low"])
        return ends[0] < ends[1]


def ways_table(facts: StudyFacts) -> PageTable:
    """A row for each cell of the default grid of which a machine has measured two ways. Each layout
    is of the machine with most evidence that has it."""
    rows = moves(facts.study, facts.summary)
    usual = _usual(facts.study)
    by_layout: dict[str, tuple[str, list[Cell]]] = {}
    for machine in machines_by_evidence(facts):
        here = _cells(rows[rows["machine"] == machine].to_dict("records"))
        shown = [cell for cell in here if (cell.size, cell.count) in usual]
        for layout in dict.fromkeys(cell.layout for cell in shown):
            alike = [cell for cell in shown if cell.layout == layout]
            by_layout.setdefault(layout, (machine, alike))
    if not by_layout:
        return PageTable([*WHERE, FIRST], [], NOT_MEASURED)
    found = [(machine, cell) for machine, cells in by_layout.values() for cell in cells]
    found.sort(key=lambda one: one[1].order)
    bases = _bases(facts)
    lines = [_row(cell, bases[machine, cell.ranked[0], cell.key]) for machine, cell in found]
    if SCATTERED not in by_layout:
        lines.append([SCATTERED, "", "", "not measured yet", *("" for _ in FIGURES)])
    return PageTable([*WHERE, FIRST, *FIGURES], lines, NOT_MEASURED, numeric=NUMERIC)


def _bases(facts: StudyFacts) -> Mapping[tuple[str, str, Key], str]:
    """Machine, runs and hosts of each host time, by machine, variant and key of its cell."""
    found = {}
    for row in facts.figures.fresh(METRIC):
        values = {**PLACE_KEYS, **parse_case(row.case)}
        if set(values) >= PIECE_KEYS and not set(values) - {*PIECE_KEYS, *PLACE_KEYS}:
            key = _key(values)
            basis = f"{facts.inputs.called(row.machine)}, {runs_phrase(row.runs, row.hosts)}"
            found[row.machine, row.variant, key] = basis
    return found


def _key(values: Mapping[Any, Any]) -> Key:
    """Direction, layouts, size and number of pieces. A single piece has no layout."""
    size, count = int(values["size"]), int(values["count"])
    is_one = count == 1
    host, device = ("packed", "packed") if is_one else (values["host"], values["device"])
    return str(values["direction"]), str(host), str(device), size, count


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
    cells: dict[Key, Cell] = {}
    for row in rows:
        is_list = method_of(row["variant"]).startswith(LISTED)
        if row["metric"] not in (METRIC, CALLER) or row["busy"]:
            continue
        # Ways for pieces of a list can move others, too, but are for these.
        if is_list != (row["count"] > 1 and row["host"] == SCATTERED):
            continue
        key = _key(row)
        times = cells.setdefault(key, Cell(*key)).times
        times.setdefault(row["variant"], {})[row["metric"]] = row
    for cell in cells.values():
        for name in [name for name, known in cell.times.items() if METRIC not in known]:
            del cell.times[name]
    known = (cell for cell in cells.values() if cell.layout and len(cell.times) > 1)
    return sorted(known, key=lambda cell: cell.order)


def _row(cell: Cell, basis: str) -> list[object]:
    best, *others = cell.ranked
    cost = cell.times[best].get(CALLER)
    return [
        Markup("{}<br>{}").format(cell.layout, basis),
        _link(cell),
        whole(cell.count),
        _first(cell),
        _rate(cell, best),
        quantity(cost["median"], "s") if cost else "",
        ", ".join(_other(cell, name) for name in others),
    ]


def _rate(cell: Cell, variant: str) -> str:
    """The rate in GB/s until all pieces have arrived."""
    rate = cell.size * cell.count / cell.seconds(variant)
    return digits(rate / 1e9) if rate >= LEAST_RATE else quantity(rate, "B/s")


def _other(cell: Cell, variant: str) -> str:
    """`gather 44.4 (8.458 µs)`: a way, its rate and the caller's cost, on one line."""
    known = cell.times[variant].get(CALLER)
    cost = f" ({quantity(known['median'], 's')})" if known else ""
    return f"{_call(variant)} {_rate(cell, variant)}{cost}".replace(" ", NO_BREAK)


def _first(cell: Cell) -> Markup:
    """The way to call first, and below it those that are not measurably slower or faster."""
    best, *others = cell.ranked
    first = Markup("<code>{}</code>").format(best)
    equal = [_call(name) for name in others if _is_equal(cell, best, name)]
    return (
        first + Markup("<br>no measurable difference: {}").format(", ".join(equal))
        if equal
        else first
    )


def _is_equal(cell: Cell, best: str, other: str) -> bool:
    """Whether no difference of the two was measured. A slower time without an interval counts as
    slower, a faster one never takes the first place."""
    if cell.seconds(other) < cell.seconds(best):
        return True
    return float(cell.times[other][METRIC]["ci_low"]) <= float(cell.times[best][METRIC]["ci_high"])


def _call(variant: str) -> str:
    """The call, without the memory if that is pinned."""
    memory = memory_of(variant)
    call = method_of(variant).removeprefix(LISTED)
    return call if memory == PINNED else f"{memory}_{call}"


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
    if cell.host == SCATTERED:
        yield "pool", binary(cell.size * cell.count)
