"""The adviser on the study's page, with the fastest ways as a table for readers without scripts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from analysis.api.charts import StudyFacts, Widget, chips, machines_by_evidence
from analysis.api.files import adapter
from analysis.api.model import ENTRY_BYTES, walk_seconds

from .adviser import Adviser
from .chart_parts import binary
from .kinds import method_of
from .measured import advisers_of, ways

POOLS: Final = tuple(2**k for k in range(28, 41))
"""Sizes of pools in bytes with a modelled time of a page walk."""
TOUCHES: Final = 2**18
"""Translations that a modelled launch needs."""
COLUMNS = ("machine", "direction", "host", "device", "stream", "size", "fastest way by count")


def ordered_advisers(facts: StudyFacts) -> list[Adviser]:
    """The adviser of the machine that has measured the most ways first; of equal ones, that of the
    machine with most evidence."""
    order = machines_by_evidence(facts)
    found = advisers_of(facts.study, facts.summary)
    return sorted(found, key=lambda one: (-len(one.ways), order.index(one.machine)))


def widgets(facts: StudyFacts) -> dict[str, Widget | None]:
    """Widgets by their names on the page; None without data."""
    advisers = ordered_advisers(facts)
    if not advisers:
        return {"adviser": None}
    data = [
        {
            **adapter(Adviser).dump_python(one, mode="json"),
            "called": facts.inputs.called(one.machine),
            "entry_bytes": ENTRY_BYTES,
            "walks": walks(facts, one.machine),
            "unmeasured": unmeasured(facts, one),
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


def walks(facts: StudyFacts, machine: str) -> list[tuple[int, float]]:
    """Sizes of pools, and seconds of page walks per translation that a launch needs, by the model;
    empty on a machine without calibration."""
    chip = chips(facts.inputs).get(machine)
    if chip is None or not np.isfinite(chip.parameters.held_entries):
        return []
    pools = np.array(POOLS, dtype=float)
    entries = pools / ENTRY_BYTES
    touches, ordered = np.full(len(pools), float(TOUCHES)), np.zeros(len(pools))
    moved = touches * ENTRY_BYTES / 16
    seconds = walk_seconds(chip.parameters, entries, entries, touches, ordered, moved)
    return list(zip(POOLS, (seconds / touches).tolist(), strict=True))


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
