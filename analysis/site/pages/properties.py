"""The table of named properties of two machines, for the page about hardware."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Final

from markupsafe import Markup

from analysis.base.equivalence import (
    DIFFERENT,
    EQUAL,
    EQUAL_WITHIN,
    FALSE_ALARMS,
    FEW_RUNS,
    UNDECIDED,
)
from analysis.base.quantities import (
    digits,
    quantity,
    quantity_interval,
    ratio,
    ratio_interval,
    times_phrase,
    with_interval,
)
from analysis.site.facts.comparison import Comparison, Subject
from analysis.site.facts.datasheets import DATASHEETS, MEMORY
from analysis.site.facts.properties import Compared, Measured, compare_properties, without_runs
from analysis.site.pages.html import folded, joined, link, table
from analysis.site.pages.page import macro

WRITTEN: Final = {
    DIFFERENT: "different",
    EQUAL: "equal",
    UNDECIDED: "undecided",
    FEW_RUNS: "undecided: too few runs",
}
"""Decisions in words, in the order of the table."""


@macro("machine_properties")
def machine_properties(comparison: Comparison) -> str:
    """Named properties of every two machines: both figures, and whether they differ."""
    parts = [
        _of_pair(comparison, one, other, found)
        for one, other in combinations(comparison.machines, 2)
        if (found := compare_properties(comparison, one, other))
    ]
    return "\n\n".join(parts) or "No two machines have a property in common yet."


@macro("properties_in_brief", may_be_empty=True)
def in_brief(comparison: Comparison) -> str:
    """One sentence: how many properties differ, are equal or open, and which one differs most, of
    the two machines with most tested properties; empty without any."""
    pairs = [
        (one, other, found)
        for one, other in combinations(comparison.machines, 2)
        if (found := _tested(compare_properties(comparison, one, other)))
    ]
    if not pairs:
        return ""
    one, other, found = max(pairs, key=lambda pair: len(pair[2]))
    called = [comparison.called(subject) for subject in (one, other)]
    counts = {name: sum(each.decided.decision == name for each in found) for name in WRITTEN}
    different = [each for each in found if each.decided.decision == DIFFERENT]
    most = max(different, key=lambda each: abs(math.log(each.decided.ratio)), default=None)
    named = ""
    if most is not None:
        is_more = most.decided.ratio > 1
        times = times_phrase(most.decided.ratio if is_more else 1 / most.decided.ratio)
        more, less = called[::-1] if is_more else called
        largest = "the largest difference: " * (len(different) > 1)
        named = f" ({largest}{most.of.title}, where {more} has {times} {less}'s figure)"
    have = "differs" if counts[DIFFERENT] == 1 else "differ"
    properties, are = ("property", "is") if len(found) == 1 else ("properties", "are")
    return (
        f"Of {len(found)} tested {properties} of {called[0]} and {called[1]},"
        f" {counts[DIFFERENT] or 'none'} {have if counts[DIFFERENT] else 'differs'}{named},"
        f" {counts[EQUAL]} {are} equal within {EQUAL_WITHIN * 100:g} %, and for"
        f" {counts[UNDECIDED]} the runs cannot tell."
    )


def _tested(found: Sequence[Compared]) -> list[Compared]:
    """The properties with enough runs on both machines for a decision."""
    return [each for each in found if each.decided.decision != FEW_RUNS]


def _of_pair(
    comparison: Comparison, one: Subject, other: Subject, found: Sequence[Compared]
) -> str:
    """Sentences and tables about two machines: decided properties, and the others folded."""
    called = [comparison.called(subject) for subject in (one, other)]
    decided = [each for each in found if each.decided.decision in (DIFFERENT, EQUAL)]
    rest = [each for each in found if each not in decided]
    parts = [_summary(called, found), *_reasons(comparison, (one, other), found)]
    if decided:
        parts.append(_table(called, decided))
    if rest:
        parts.append(folded(f"Undecided properties ({len(rest)})", _table(called, rest)))
    if missing := without_runs(found):
        titles = "; ".join(of.title for of in missing)
        parts.append(f"Not measured in one run on both machines: {titles}.")
    return "\n\n".join(parts)


def _summary(called: Sequence[str], found: Sequence[Compared]) -> str:
    """Numbers of properties by decision, and of false alarms to expect."""
    counts = {name: sum(one.decided.decision == name for one in found) for name in WRITTEN}
    tested = len(found) - counts[FEW_RUNS]
    if not tested:
        return f"**{called[0]} and {called[1]}:** no property has enough runs on both to decide."
    uncorrected = digits(tested * FALSE_ALARMS, 2)
    return (
        f"**{called[0]} and {called[1]}:** {counts[DIFFERENT]} of {tested} properties differ,"
        f" {counts[EQUAL]} are equal within"
        f" {EQUAL_WITHIN * 100:g} %, {counts[UNDECIDED]} are undecided."
        f" If the machines were equal, the probability of any property that differs by chance would"
        f" be at most {FALSE_ALARMS * 100:g} %. Without the correction for the whole table,"
        f" {uncorrected} false alarms would be expected."
        + (f" {counts[FEW_RUNS]} more have too few runs." if counts[FEW_RUNS] else "")
    )


def _reasons(
    comparison: Comparison, pair: Sequence[Subject], found: Sequence[Compared]
) -> list[Markup]:
    """The reasons for the expectations by the part that bounds a property, and the datasheets."""
    reasons = {one.of.bound: one.expected.reason for one in found if one.expected.reason}
    if not reasons:
        return []
    texts: list[object] = [f"{bound}: {reason}" for bound, reason in reasons.items()]
    if MEMORY in reasons:
        for subject in pair:
            sheet = DATASHEETS[str(comparison.inputs.machines[subject.machine]["gpu"])]
            rate = f"{sheet.memory}, {quantity(sheet.memory_rate, 'B/s')}"
            texts.append(joined(" ", (comparison.called(subject), link(sheet.source, rate))))
    return [joined("", ("Expected from the datasheets, by part: ", joined("; ", texts), "."))]


def _table(called: Sequence[str], found: Sequence[Compared]) -> Markup:
    columns = ["property", "decision", f"{called[1]} / {called[0]}", *called, "runs (hosts)"]
    columns += ["datasheets"]
    order = list(WRITTEN)
    rows = [
        [
            one.of.title,
            WRITTEN[one.decided.decision],
            _ratio(one),
            *(_figure(side, one.of.unit) for side in (one.one, one.other)),
            ", ".join(f"{len(side.by_run)} ({side.hosts})" for side in (one.one, one.other)),
            _expected(one),
        ]
        for one in sorted(found, key=lambda one: order.index(one.decided.decision))
    ]
    return table(columns, rows, numeric=columns[2:6])


def _figure(side: Measured, unit: str) -> str:
    """The median with its interval."""
    unit = unit.removeprefix("1") or "1"
    median, low, high = side.estimate()
    interval = "" if math.isnan(low) else quantity_interval(median, low, high, unit)
    return with_interval(quantity(median, unit), interval)


def _ratio(one: Compared) -> str:
    """The ratio of the second machine's figure to the first's."""
    decided = one.decided
    interval = "" if math.isnan(decided.low) else ratio_interval(decided.low, decided.high)
    return with_interval(ratio(decided.ratio), interval)


def _expected(one: Compared) -> str:
    """The part that bounds the property, and the ratio of speeds to expect of it."""
    expected = one.expected.ratio
    if math.isnan(expected):
        return f"none ({one.of.bound})"
    return (
        f"equal ({one.of.bound})" if expected == 1 else f"up to {ratio(expected)} ({one.of.bound})"
    )
