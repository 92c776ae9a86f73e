"""The table of all ways by size: the call to take, then rate and cost of every way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from markupsafe import Markup

from analysis.api.charts import PageTable, StudyFacts, machines_by_evidence
from analysis.api.quantities import binary, runs_phrase, whole
from analysis.api.tables import Point

from .answering import Measured, Place
from .kinds import memory_of, method_of
from .measured import METRIC, moves
from .widgets import answering, choices

LAYOUTS: Final = {
    "one block": Place("", "any", "h2d", "packed", "packed"),
    "scattered": Place(""),
    "scattered to packed": Place("", device="packed"),
    "evenly spaced": Place("", "any", "h2d", "pitched", "packed"),
    "one block, to the host": Place("", "any", "d2h", "packed", "packed"),
}
"""In the order of the table, each with its situation."""
COLUMNS: Final = ("pieces", "size", "number", "use", "rate", "call returns after", "other calls")
NO_BREAK: Final = "\u00a0"

Bases = Mapping[tuple[str, str, int, int], str]
"""Runs and hosts of a host time, by machine, variant, size and number."""


def ways(facts: StudyFacts) -> PageTable:
    """A row for each cell of the default grid of which a machine has measured two ways. Each layout
    is of the machine with most evidence that has it."""
    found = answering(facts)
    # The full grid has too many sizes and numbers for a table.
    cases = (case for one in facts.study.variants for case in one.in_grid("default"))
    pairs = ((case.values.get("size"), case.values.get("count")) for case in cases)
    usual = {(int(size), int(count)) for size, count in pairs if size and count}
    table = moves(facts.study, facts.summary)
    table = table[table["metric"] == METRIC]
    keys = table[["machine", "variant", "size", "count"]].itertuples(index=False, name=None)
    bases = dict(zip(keys, map(runs_phrase, table["runs"], table["hosts"]), strict=True))
    rows = []
    for layout, place in LAYOUTS.items():
        measured = (found.get(place._replace(machine=name)) for name in machines_by_evidence(facts))
        if here := next(filter(None, measured), None):
            machine = facts.inputs.called(here.place.machine)
            name = Markup("{}<br>{}, ").format(layout, machine)
            known = sorted(usual & here.times.keys())
            rows += [_row(name, here, at, bases) for at in known if len(here.times[at]) > 1]
    empty = "No machine has measured these ways yet."
    return PageTable(COLUMNS, rows, empty, numeric=[*COLUMNS[1:3], *COLUMNS[4:6]])


def _row(name: Markup, here: Measured, point: Point, bases: Bases) -> list[object]:
    found = here.answer(*point)
    assert found is not None
    size, count = point
    _, _, rate, returns, _ = here.row(found, found.way)
    choice = {"size": binary(size), "count": count, **choices(here.place)}
    asked = urlencode({f"adviser.{key}": value for key, value in choice.items()})
    form = f"../../what_to_call/?{asked}#widget-adviser"
    return [
        name + bases[here.place.machine, found.way, size, count],
        Markup('<a href="{}">{}</a>').format(form, binary(size)),
        whole(count),
        Markup("<code>{}</code>").format(found.way),
        rate,
        returns,
        ", ".join(_other(way, here.row(found, way)) for way in found.seconds if way != found.way),
    ]


def _other(way: str, cells: list[str]) -> str:
    """`gather 44.4 GB/s (8.458 µs)`: a way, its rate and the caller's cost, on one line."""
    memory, call = memory_of(way), method_of(way).removeprefix("list_")
    name = call if memory == "pinned" else f"{memory}_{call}"
    _, _, rate, returns, _ = cells
    return " ".join([name, rate, *([f"({returns})"] if returns else [])]).replace(" ", NO_BREAK)


TABLES: Final = {"ways": ways}
