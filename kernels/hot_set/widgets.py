"""The choice of a variant for the hot set, as a form and as a table for readers without scripts."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from analysis.api.charts import MeasuredRow, StudyFacts, Widget, samples_address
from analysis.api.quantities import INTERVAL, quantity, quantity_interval, ratio, runs_phrase
from analysis.api.tables import NEAR, link_rates

from .cells import CLOCK, FETCH_ALL, PUBLISHED_WAY, Cell, case_of, cells, of_variants
from .choosing import MODEL_LAYERS, Choice, choices
from .page_tables import choice


def widgets(facts: StudyFacts) -> dict[str, Widget | None]:
    """`choice`; None without results."""
    found = choices(facts)
    if not found:
        return {"choice": None}
    table = choice(facts)
    rows = [[Markup(cell).striptags() for cell in row] for row in table.rows]
    data = {
        "near": NEAR,
        "row_bytes": facts.study.constants["token_bytes"],
        "link": link(facts),
        "cells": [_entry(facts, one) for one in found],
    }
    return {"choice": Widget(data, table.columns, rows)}


def link(facts: StudyFacts) -> Mapping[str, float]:
    """Highest measured rate of the link in B/s, by machine: of the copy engine, or of the misses
    alone."""
    assert facts.study.limit is not None
    rates = dict(link_rates(facts.inputs.results, facts.study.limit))
    for cell in of_variants(cells(facts), [FETCH_ALL]):
        payload = cell.place.layers * cell.misses * facts.study.constants["token_bytes"]
        machine = cell.place.machine
        rates[machine] = max(rates.get(machine, 0.0), payload / cell.seconds)
    return rates


def _entry(facts: StudyFacts, one: Choice) -> dict[str, object]:
    """Entry of the form for a measured cell; figures as text."""
    cell, place = one.cell, one.cell.place
    case = case_of(cell)
    row = facts.figures.find(place.machine, cell.variant, case, CLOCK)
    return {
        "machine": place.machine,
        "called": facts.inputs.called(place.machine),
        "requests": place.requests,
        "misses": cell.misses,
        "pool": place.pool_mib * 2**20,
        "variant": cell.variant,
        "title": facts.study.variant(cell.variant).title,
        "seconds": cell.seconds,
        "time": quantity(cell.seconds, "s"),
        "basis": _basis(row) if row else "",
        "over": _over(one),
        "layers": MODEL_LAYERS,
        "model": quantity(MODEL_LAYERS * cell.seconds, "s"),
        "graph": _graph(facts, one.graph) if one.graph else "",
        "samples": samples_address(place.machine, facts.study.name, cell.variant, case, CLOCK),
    }


def _graph(facts: StudyFacts, cell: Cell) -> str:
    """Time of the fastest graph of layers, and its way in words."""
    return f"{quantity(cell.seconds, 's')} ({facts.study.variant(cell.variant).title})"


def _over(one: Choice) -> str:
    """The speed over the published way, unless that is the choice."""
    if one.cell.variant == PUBLISHED_WAY:
        return ""
    return ratio(one.published_s / one.cell.seconds)


def _basis(row: MeasuredRow) -> str:
    """Interval, runs and hosts of a time."""
    interval = quantity_interval(row.median, row.ci_low, row.ci_high, "s")
    basis = runs_phrase(row.runs, row.hosts)
    return f"{INTERVAL}: {interval} ({basis})" if interval else basis
