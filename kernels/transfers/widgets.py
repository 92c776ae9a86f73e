"""The adviser on the study's page, with the fastest ways as a table for readers without scripts."""

from __future__ import annotations

from collections.abc import Iterable

from analysis.api.charts import StudyFacts, Widget
from analysis.api.files import adapter

from .adviser import Adviser
from .chart_parts import binary
from .measured import advisers_of

COLUMNS = ("machine", "direction", "host", "device", "stream", "size", "fastest way by count")


def widgets(facts: StudyFacts) -> dict[str, Widget | None]:
    """Widgets by their names on the page; None without data."""
    advisers = advisers_of(facts.study, facts.summary)
    if not advisers:
        return {"adviser": None}
    data = [adapter(Adviser).dump_python(one, mode="json") for one in advisers]
    table = [
        row
        for adviser in advisers
        for row in _threshold_rows(adviser, facts.inputs.called(adviser.machine))
    ]
    return {"adviser": Widget(data, COLUMNS, table)}


def _threshold_rows(adviser: Adviser, called: str) -> Iterable[list[str]]:
    """A row for each size at which the rules of a machine, as it is `called`, change."""
    shown: tuple[object, ...] = ()
    for at in adviser.thresholds:
        stream = "busy" if at.is_busy else "idle"
        place = [called, at.direction, at.host, at.device, stream]
        if shown != (place, at.rules):
            shown = place, at.rules
            ways = ", ".join(f"from {rule.count_from}: {rule.variant}" for rule in at.rules)
            yield [*place, binary(at.size_from), ways]
