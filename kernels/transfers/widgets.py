"""The form of What should I call?, with its answers as a table for readers without scripts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from analysis.api.charts import (
    FormTable,
    StudyFacts,
    Widget,
    choice,
    form_data,
    machines_by_evidence,
    number,
)
from analysis.api.tables import link_rates

from .answering import ANY, COLUMNS, Measured, Place, measured
from .kinds import MEMORIES

START = Place("")


@lru_cache(maxsize=1)
def answering(facts: StudyFacts) -> Mapping[Place, Measured]:
    """The measured times of all situations, of machines with more evidence first."""
    assert facts.study.limit is not None
    links = link_rates(facts.inputs.results, facts.study.limit)
    found = measured(facts.study, facts.summary, links)
    order = machines_by_evidence(facts)
    return {place: found[place] for place in sorted(found, key=lambda at: order.index(at.machine))}


def widgets(facts: StudyFacts) -> dict[str, Widget | None]:
    """Widgets by their names on the page; None without data."""
    found = answering(facts)
    if not found:
        return {"adviser": None}
    layouts = sorted({choices(place)["layout"]: place.layout for place in found}.items())
    known = {place.memory for place in found}
    fields = [
        choice("machine", {at.machine: facts.inputs.called(at.machine) for at in found}),
        number("size", "size of a piece", "16 KiB", "bytes"),
        number("count", "pieces of a request", "1024"),
        choice("layout", dict(layouts[::-1]), choices(START)["layout"]),
        choice("direction", {at.direction: at.direction for at in found}, "h2d"),
        choice("stream", {"idle": "idle", "busy": "busy"}),
        choice("memory", {one: one for one in (*MEMORIES, ANY) if one in known}, START.memory),
    ]
    tables = [_table(place, here) for place, here in found.items()]
    rows = [
        [facts.inputs.called(place.machine), here.cell(point), str(place)]
        for place, here in found.items()
        if place.memory == START.memory
        for point in sorted(here.times)
    ]
    data = form_data("What is moved", fields, ["size", "count"], COLUMNS, tables)
    return {"adviser": Widget(data, ("machine", "call", "situation"), rows)}


def choices(place: Place) -> dict[str, str]:
    """The choices of the form that lead to a situation, without the machine."""
    return {
        "layout": f"{place.host}-{place.device}",
        "direction": place.direction,
        "stream": "busy" if place.is_busy else "idle",
        "memory": place.memory,
    }


def _table(place: Place, here: Measured) -> FormTable:
    cells = [(point, here.cell(point)) for point in here.times]
    answers, spans = here.all_answers()
    where, written = {"machine": place.machine, **choices(place)}, []
    for found in answers:
        rows = [[*here.row(found, way), f"studies/transfers/#{way}"] for way in found.seconds]
        written.append({"lines": here.in_words(found), "rows": rows})
    return FormTable(where, spans, written, cells, here.multiple)
