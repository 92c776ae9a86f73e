"""The choice of a variant for the hot set, as a form and as a table for readers without scripts."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from analysis.api.charts import FormTable, StudyFacts, Widget, choice, form_data, number
from analysis.api.quantities import binary, extent, ratio, whole
from analysis.api.tables import Answer, Point, Times, all_answers, answer

from . import page_tables
from .cells import PUBLISHED_WAY, step_names, times_by_machine

COLUMNS = ("variant", "time of a layer", "over the fastest")


def widgets(facts: StudyFacts) -> dict[str, Widget | None]:
    """`choice`; None without results."""
    found = times_by_machine(facts)
    if not found:
        return {"choice": None}
    requests, pool, misses = next(iter(found[next(iter(found))]))
    fields = [
        choice("machine", {machine: facts.inputs.called(machine) for machine in found}),
        number("requests", "requests of a step", str(requests)),
        number("misses", "misses of all requests", str(misses)),
        number("pool", "pool on the host", f"{pool // 2**20} MiB", "bytes"),
    ]
    titles = {way: facts.study.variant(way).title for way in step_names(facts)}
    tables = [_table(titles, machine, times) for machine, times in found.items()]
    axes = ["requests", "pool", "misses"]
    table = page_tables.choice(facts)
    rows = [[Markup(cell).striptags() for cell in row] for row in table.rows]
    data = form_data("The hot set of a layer", fields, axes, COLUMNS, tables)
    return {"choice": Widget(data, table.columns, rows)}


def _table(titles: Mapping[str, str], machine: str, times: Times) -> FormTable:
    """The answers of a machine, with the ways in the order of `titles`, the simplest first."""
    answers, spans = all_answers(times, [*titles])
    written = [{"lines": _lines(titles, found), "rows": _rows(titles, found)} for found in answers]
    cells = [
        (point, f"{_case(point)}: {extent(here.seconds[here.way], 's')} by {titles[here.way]}")
        for point in times
        if (here := answer(times, [*titles], point))
    ]
    return FormTable({"machine": machine}, spans, written, cells)


def _rows(titles: Mapping[str, str], found: Answer) -> list[list[str]]:
    return [
        [titles[way], extent(of, "s"), ratio(found.over_fastest(way)), f"studies/hot_set/#{way}"]
        for way, of in found.seconds.items()
    ]


def _lines(titles: Mapping[str, str], found: Answer) -> list[str]:
    lines = [f"{titles[found.way]}: {extent(found.seconds[found.way], 's')} a layer."]
    lines.append(f"Measured: {'; '.join(map(_case, found.corners))}.")
    if found.way != PUBLISHED_WAY:
        gain = found.over_fastest(PUBLISHED_WAY) / found.over_fastest(found.way)
        lines.append(f"It is {ratio(gain)} as fast as a block per request.")
    return [*lines, *found.remarks(titles.__getitem__)]


def _case(point: Point) -> str:
    requests, pool, misses = point
    return f"requests: {requests}, misses: {whole(misses)}, pool: {binary(pool)}"
