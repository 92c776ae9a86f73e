"""The table of all ways by size: the call to take, then rate and cost of every way."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Final
from urllib.parse import urlencode

from markupsafe import Markup

from analysis.api.charts import PageTable, StudyFacts, machines_by_evidence
from analysis.api.quantities import runs_phrase, whole
from analysis.api.study import Study, parse_case

from .answering import Measured, Place
from .chart_parts import binary
from .kinds import memory_of, method_of
from .measured import METRIC, PIECE_KEYS, PLACE_KEYS
from .widgets import answering, choices

LISTED: Final = "list_"
LAYOUTS: Final = {
    "one block": Place("", "any", "h2d", "packed", "packed"),
    "scattered": Place(""),
    "scattered to packed": Place("", device="packed"),
    "evenly spaced": Place("", "any", "h2d", "pitched", "packed"),
    "one block, to the host": Place("", "any", "d2h", "packed", "packed"),
}
"""In the order of the table, each with its situation."""
NOT_MEASURED: Final = "No machine has measured these ways yet."
COLUMNS: Final = ("pieces", "size", "number", "use", "rate", "call returns after", "other calls")
NO_BREAK: Final = "\u00a0"


def ways_table(facts: StudyFacts) -> PageTable:
    """A row for each cell of the default grid of which a machine has measured two ways. Each layout
    is of the machine with most evidence that has it."""
    found, usual, basis = answering(facts), _usual(facts.study), _bases(facts)
    rows = []
    for layout, place in LAYOUTS.items():
        measured = (found.get(place._replace(machine=name)) for name in machines_by_evidence(facts))
        for here in islice(filter(None, measured), 1):
            known = sorted(usual & here.times.keys())
            rows += [_row(layout, here, at, basis) for at in known if len(here.times[at]) > 1]
    return PageTable(COLUMNS, rows, NOT_MEASURED, numeric=[*COLUMNS[1:3], *COLUMNS[4:6]])


def _usual(study: Study) -> set[tuple[int, int]]:
    """Sizes and numbers of pieces in the default grid: the full one has too many for a table."""
    return {
        (int(case["size"]), int(case["count"]))
        for variant in study.variants
        for case in variant.cases
        if case.grid == "default" and {"size", "count"} <= set(case.values)
    }


def _bases(facts: StudyFacts) -> Mapping[tuple[str, str, int, int], str]:
    """Machine, runs and hosts of a host time, by machine, variant, size and number."""
    found = {}
    for row in facts.fresh(METRIC):
        values = parse_case(row.case)
        if PIECE_KEYS <= set(values) <= {*PIECE_KEYS, *PLACE_KEYS}:
            key = row.machine, row.variant, int(values["size"]), int(values["count"])
            basis = f"{facts.inputs.called(row.machine)}, {runs_phrase(row.runs, row.hosts)}"
            found[key] = basis
    return found


def _row(
    layout: str,
    here: Measured,
    point: tuple[int, int],
    basis: Mapping[tuple[str, str, int, int], str],
) -> list[object]:
    size, count = point
    found = here.answer(size, count)
    assert found is not None
    _, _, rate, returns, _ = here.row(found, found.way)
    others = [way for way in found.seconds if way != found.way]
    return [
        Markup("{}<br>{}").format(layout, basis[here.place.machine, found.way, size, count]),
        link(here.place, size, count),
        whole(count),
        Markup("<code>{}</code>").format(found.way),
        rate,
        returns,
        ", ".join(_other(way, here.row(found, way)) for way in others),
    ]


def _other(way: str, cells: list[str]) -> str:
    """`gather 44.4 GB/s (8.458 µs)`: a way, its rate and the caller's cost, on one line."""
    memory, call = memory_of(way), method_of(way).removeprefix(LISTED)
    name = call if memory == "pinned" else f"{memory}_{call}"
    _, _, rate, returns, _ = cells
    return " ".join([name, rate, *([f"({returns})"] if returns else [])]).replace(" ", NO_BREAK)


def link(place: Place, size: int, count: int) -> Markup:
    """The size of a piece, as a link to the form with this choice."""
    choice = {"size": binary(size), "count": count, **choices(place)}
    asked = urlencode({f"adviser.{key}": value for key, value in choice.items()})
    address = f"../../what_to_call/?{asked}#widget-adviser"
    return Markup('<a href="{}">{}</a>').format(address, binary(size))
