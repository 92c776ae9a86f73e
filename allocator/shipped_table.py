"""The table of both studies' pages: an allocator of ours beside those that packages ship."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from markupsafe import Markup

from analysis.api.charts import PageTable, StudyFacts, machines_by_evidence
from analysis.api.quantities import quantity, ratio, runs_phrase

OPERATIONS: Final = 2
"""Operations of a pair: an allocation and a free."""


def shipped_table(
    facts: StudyFacts,
    ours: str,
    others: Sequence[str],
    pairs: Mapping[str, str],
    reserved_in: Mapping[str, str] | None = None,
) -> PageTable:
    """A row for each machine and allocator: `ours`, `others` and those with the role `shipped`.

    pairs: columns with the time of a pair, by pattern, and how many times that of `ours` it is
    reserved_in: columns with the peak of reserved bytes, by pattern
    """
    held_in = reserved_in or {}
    shipped = [variant.name for variant in facts.study.with_role("shipped")]
    rows = []
    for machine in machines_by_evidence(facts):
        for name in (ours, *others, *shipped):
            times = [_pair(facts, machine, name, ours, pattern) for pattern in pairs]
            held = [_held(facts, machine, name, pattern) for pattern in held_in]
            if any(times) or any(held):
                our_name = Markup("<code>{}</code>").format(name)
                title = our_name if name == ours else facts.study.variant(name).title
                row = [facts.inputs.called(machine), title, *times, *held]
                rows.append([*row, _least_runs(facts, machine, name, [*pairs, *held_in])])
    columns = ["machine", "allocator", *pairs.values(), *held_in.values(), "runs"]
    empty = "No machine has measured a shipped allocator yet."
    return PageTable(columns, rows, empty, columns[2:-1])


def _pair(facts: StudyFacts, machine: str, name: str, ours: str, pattern: str) -> str:
    """The time of a pair of operations, with its ratio to that of `ours`; empty without either."""
    one, our = (facts.find(machine, it, f"pattern={pattern}", "op_time") for it in (name, ours))
    if one is None or our is None or one.stale or our.stale:
        return ""
    text = quantity(OPERATIONS * one.median, "s")
    return text if name == ours else f"{text}, {ratio(one.median / our.median)}"


def _held(facts: StudyFacts, machine: str, name: str, pattern: str) -> str:
    row = facts.find(machine, name, f"pattern={pattern}", "reserved")
    return quantity(row.median, "B") if row is not None and not row.stale else ""


def _least_runs(facts: StudyFacts, machine: str, name: str, patterns: Sequence[str]) -> str:
    """The least number of runs and hosts of the times of an allocator."""
    found = (facts.find(machine, name, f"pattern={it}", "op_time") for it in patterns)
    return runs_phrase(*min((row.runs, row.hosts) for row in found if row is not None))
