"""Tables of the page: the call to take by size, with rate and cost of every way, and when pinning
pays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

import numpy as np
from markupsafe import Markup

from analysis.api.answers import ARRIVED, Point, Situation, questions_of
from analysis.api.charts import (
    PageTable,
    StudyFacts,
    fresh_figures,
    machines_by_evidence,
    situations_of,
)
from analysis.api.quantities import binary, runs_phrase, whole

from .answers import ANY
from .charts import single_copies
from .kinds import memory_of, method_of
from .measured import moves

TO_DEVICE: Final = {"direction": "h2d"}
SCATTERED: Final = {**TO_DEVICE, "device": "scattered", "stream": "idle"}
LAYOUTS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "one block": ("block", {**TO_DEVICE, "memory": ANY}),
    "scattered": ("pieces", SCATTERED),
    "scattered to packed": ("pieces", {**SCATTERED, "device": "packed"}),
    "evenly spaced": ("even_rows", {**TO_DEVICE, "device": "packed", "memory": ANY}),
    "one block, to the host": ("block", {"direction": "d2h", "memory": ANY}),
}
"""In the order of the table, each with its question and situation."""
COLUMNS: Final = ("pieces", "size", "number", "use", "rate", "call returns after", "other calls")
OF_HOLDING: Final = ("allocate_time", "register_time", "free_time")
"""The times that memory costs once."""
PLAIN: Final = "pageable"
NO_BREAK: Final = "\u00a0"
TOWARDS: Final = {"h2d": "to the device", "d2h": "to the host"}

Bases = Mapping[tuple[str, str, int, int], str]
"""Runs and hosts of a host time, by machine, variant, size and number."""


def ways(facts: StudyFacts) -> PageTable:
    """A row for each cell of the default grid of which a machine has measured two ways. Each layout
    is of the machine with most evidence that has it."""
    found = {
        (here.question.name, here.machine, *here.where.values()): here
        for question in questions_of(facts.study)
        for here in situations_of(facts, question)
    }
    # The full grid has too many sizes and numbers for a table.
    cases = (case for one in facts.study.variants for case in one.in_grid("default"))
    pairs = ((case.values.get("size"), case.values.get("count")) for case in cases)
    usual = {(int(size), int(count)) for size, count in pairs if size and count}
    table = moves(facts.study, facts.summary)
    table = table[table["metric"] == ARRIVED]
    keys = table[["machine", "variant", "size", "count"]].itertuples(index=False, name=None)
    bases = dict(zip(keys, map(runs_phrase, table["runs"], table["hosts"]), strict=True))
    rows = []
    for layout, (question, where) in LAYOUTS.items():
        places = ((question, name, *where.values()) for name in machines_by_evidence(facts))
        if here := next(filter(None, map(found.get, places)), None):
            machine = facts.inputs.called(here.machine)
            name = Markup("{}<br>{}, ").format(layout, machine)
            known = sorted(at for at in here.times if (*at, 1)[:2] in usual)
            rows += [_row(name, here, at, bases) for at in known if len(here.times[at]) > 1]
    empty = "No machine has measured these ways yet."
    return PageTable(COLUMNS, rows, empty, numeric=[*COLUMNS[1:3], *COLUMNS[4:6]])


def _row(name: Markup, here: Situation, point: Point, bases: Bases) -> list[object]:
    found = here.answer(point)
    assert found is not None, "a measured point has an answer"
    size, count, *_ = (*point, 1)
    figures = here.figures(found, found.way)
    asked = {axis.name: axis.text(n) for axis, n in zip(here.question.axes, point, strict=True)}
    address = urlencode({"ask": here.question.name, **asked, **here.where})
    return [
        name + bases[here.machine, found.way, size, count],
        Markup('<a href="../../what_to_call/?{}#form">{}</a>').format(address, binary(size)),
        whole(count),
        Markup("<code>{}</code>").format(found.way),
        figures["rate"],
        figures["call returns after"],
        ", ".join(
            _other(way, here.figures(found, way)) for way in found.seconds if way != found.way
        ),
    ]


def _other(way: str, figures: Mapping[str, str]) -> str:
    """`gather 44.4 GB/s (8.458 µs)`: a way, its rate and the caller's cost, on one line."""
    memory, call = memory_of(way), method_of(way).removeprefix("list_")
    name = call if memory == "pinned" else f"{memory}_{call}"
    returns = figures["call returns after"]
    parts = [name, figures["rate"], f"({returns})" * bool(returns)]
    return " ".join(filter(None, parts)).replace(" ", NO_BREAK)


def break_even(facts: StudyFacts) -> PageTable:
    """Number of copies after which memory has paid for itself, compared with pageable memory: the
    extra cost of allocating and freeing, divided by the time that each copy saves."""
    of_memory, of_copy = ["machine", "memory", "size"], ["machine", "direction", "size"]
    once = fresh_figures(facts, *OF_HOLDING)
    once = once.assign(memory=once["variant"].map(memory_of))
    table = single_copies(facts, "host_time")
    table = table.join(once.groupby(of_memory)["median"].sum().rename("cost"), on=of_memory)
    plain = table[table["memory"] == PLAIN].set_index(of_copy)[["median", "cost"]]
    table = table[table["memory"] != PLAIN].join(plain.add_suffix("_plain"), on=of_copy)
    extra, saved = table["cost"] - table["cost_plain"], table["median_plain"] - table["median"]
    copies = (extra.clip(lower=0) / saved).where(saved > 0, np.inf)[extra.notna() & saved.notna()]
    table = table.assign(copies=copies.map(_copies), memory=table["memory"].str.replace("_", " "))
    table = table.dropna(subset="copies")
    wide = table.pivot(index=["machine", "direction", "memory"], columns="size", values="copies")
    rows = [
        [facts.inputs.called(machine), TOWARDS[direction], memory, *copies]
        for (machine, direction, memory), *copies in wide.fillna("").itertuples()
    ]
    sizes = [binary(size) for size in sorted({*table["size"]})]
    columns = ["machine", "direction", "memory", *sizes]
    return PageTable(columns, rows, "No machine has measured these costs yet.", sizes)


def _copies(copies: float) -> str:
    """A number of copies: whole, `at once` for none, `never` for infinity."""
    if np.isinf(copies):
        return "never"
    return whole(np.ceil(copies)) if copies > 0 else "at once"


TABLES: Final = {"ways": ways, "break_even": break_even}
