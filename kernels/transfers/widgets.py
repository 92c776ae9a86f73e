"""The adviser on the study's page, with the fastest ways as a table for readers without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from itertools import chain

import pandas as pd

from analysis.api.charts import StudyFacts, Widget, forked_map, machines_by_evidence
from analysis.api.files import adapter
from analysis.api.study import Study
from analysis.api.tables import NEAR

from .adviser import DIRECTIONS, Adviser, Situation, Way, make_adviser
from .calls import calls_of, in_words
from .chart_parts import binary
from .kinds import method_of
from .measured import moves, timings_of, ways
from .pools import read_pools

COLUMNS = ("machine", "direction", "host", "device", "stream", "size", "fastest way by count")


@lru_cache(maxsize=1)
def ordered_advisers(facts: StudyFacts) -> Sequence[Adviser]:
    """The advisers of all machines: those with the most measured ways first, then those of machines
    with more evidence. Kept, because fitting one takes seconds."""
    found = fitted_advisers(facts.study, facts.summary)
    order = machines_by_evidence(facts)
    return sorted(found, key=lambda one: (-len(one.ways), order.index(one.machine)))


def fitted_advisers(study: Study, summary: pd.DataFrame) -> list[Adviser]:
    """The same as `advisers_of`; a process fits each direction, as the two share no times."""
    titles = {variant.name: variant.title for variant in study.variants}
    by_machine = {
        str(machine): timings_of(study, rows)
        for machine, rows in moves(study, summary).groupby("machine")
    }
    # In the order of an adviser's thresholds
    halves = [
        (machine, half)
        for machine, timings in by_machine.items()
        for direction in sorted(DIRECTIONS)
        if (half := {key: one for key, one in timings.items() if key[0].direction == direction})
    ]
    fitted = forked_map(lambda one: make_adviser(one[0], "results", one[1], titles), halves)
    return [
        _joined([half for half in fitted if half.machine == machine], timings)
        for machine, timings in by_machine.items()
    ]


def _joined(halves: Sequence[Adviser], timings: Mapping[tuple[Situation, str], object]) -> Adviser:
    """One adviser of those of both directions, with its ways in the order of `timings`."""
    places = {key: place for place, key in enumerate(timings)}

    def place(way: Way) -> int:
        situation = Situation(
            *(way.variant, way.direction, way.host, way.device, way.is_busy, way.alignment)
        )
        return min(places[situation, metric] for metric in way.costs)

    ways = sorted(chain(*(half.ways for half in halves)), key=place)
    thresholds = chain(*(half.thresholds for half in halves))
    return replace(halves[0], ways=tuple(ways), thresholds=tuple(thresholds))


def widgets(facts: StudyFacts) -> dict[str, Widget | None]:
    """Widgets by their names on the page; None without data."""
    advisers = ordered_advisers(facts)
    if not advisers:
        return {"adviser": None}
    pools = read_pools(facts.inputs.results, facts.study)
    data = [
        {
            **adapter(Adviser).dump_python(one, mode="json"),
            "called": facts.inputs.called(one.machine),
            "near": NEAR,
            "reach": pools.reach(one.machine),
            "gathers": [asdict(gather) for gather in pools.gathers_on(one.machine)],
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
