"""The adviser on the study's page, with the fastest ways as a table for readers without scripts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache, partial
from itertools import chain
from multiprocessing import get_context

from analysis.api.charts import StudyFacts, Widget, machines_by_evidence
from analysis.api.files import adapter
from analysis.api.model import ENTRY_BYTES

from .adviser import Adviser
from .calls import calls_of, in_words
from .chart_parts import binary
from .kinds import method_of
from .measured import advisers_of, ways
from .pools import pools_of_machines, reach_bytes

COLUMNS = ("machine", "direction", "host", "device", "stream", "size", "fastest way by count")


@lru_cache(maxsize=1)
def ordered_advisers(facts: StudyFacts) -> Sequence[Adviser]:
    """The advisers of all machines: those with the most measured ways first, then those of machines
    with more evidence. Kept, because fitting one takes seconds."""
    rows_by_machine = [rows for _, rows in facts.summary.groupby("machine")]
    fit = partial(advisers_of, facts.study)
    if len(rows_by_machine) > 1:
        with ProcessPoolExecutor(len(rows_by_machine), get_context("fork")) as workers:
            fits = list(workers.map(fit, rows_by_machine))
    else:
        fits = list(map(fit, rows_by_machine))
    found = chain.from_iterable(fits)
    order = machines_by_evidence(facts)
    return sorted(found, key=lambda one: (-len(one.ways), order.index(one.machine)))


def widgets(facts: StudyFacts) -> dict[str, Widget | None]:
    """Widgets by their names on the page; None without data."""
    advisers = ordered_advisers(facts)
    if not advisers:
        return {"adviser": None}
    pools = pools_of_machines(facts.inputs.results)
    known = [reach for found in pools.values() if math.isfinite(reach := reach_bytes(found))]
    data = [
        {
            **adapter(Adviser).dump_python(one, mode="json"),
            "called": facts.inputs.called(one.machine),
            "entry_bytes": ENTRY_BYTES,
            "pools": pools.get(one.machine, []),
            # Another machine's reach, for one whose pools were not measured
            "reach_elsewhere": min(known, default=None),
            "unmeasured": unmeasured(facts, one),
            "calls": calls_of(facts.study, {way.variant for way in one.ways}),
        }
        for one in advisers
    ]
    table = [
        row
        for adviser in advisers
        for row in _threshold_rows(adviser, facts.inputs.called(adviser.machine))
    ]
    return {"adviser": Widget(data, COLUMNS, table)}


def unmeasured(facts: StudyFacts, adviser: Adviser) -> list[str]:
    """Ways of pieces of a list without a fresh time on the adviser's machine."""
    known = {way.variant for way in adviser.ways}
    names = [way.name for way in ways(facts.study) if way.name not in known]
    return [name for name in names if method_of(name).startswith("list_")]


def _threshold_rows(adviser: Adviser, called: str) -> Iterable[list[str]]:
    """A row for each size at which the rules of a machine, as it is `called`, change."""
    shown: tuple[object, ...] = ()
    for at in adviser.thresholds:
        stream = "busy" if at.is_busy else "idle"
        place = [called, at.direction, at.host, at.device, stream]
        if shown != (place, at.rules):
            shown = place, at.rules
            ways = "; ".join(f"from {r.count_from}: {in_words(r.variant)}" for r in at.rules)
            yield [*place, binary(at.size_from), ways]
