"""Comparisons of machines, for the page about hardware."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Final

from markupsafe import Markup, escape

from analysis.base.quantities import (
    INTERVAL,
    listing,
    percent,
    quantity,
    quantity_interval,
    ratio,
    ratio_interval,
    speed,
    times_phrase,
    with_interval,
)
from analysis.base.statistics import MIN_RUNS
from analysis.compare.judge import DIFFERENT
from analysis.results.model.terms import ABOUT
from analysis.site.charts.columns import delivered_bytes
from analysis.site.facts.basis import basis_phrase, is_headline
from analysis.site.facts.comparison import (
    EQUAL,
    FASTER,
    PUBLISHED,
    SLOWER,
    UNCLEAR,
    Comparison,
    Ratio,
    Subject,
)
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.rows import ParameterRow
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.html import code, folded_tables, joined, plain, table, without_empty
from analysis.site.pages.machines import described_facts
from analysis.site.pages.page import macro
from analysis.site.pages.sentences import NOTHING
from analysis.study import Variant, calibrating

NAMED: Final = 12
"""Number of variants in the table of two machines: those that differ most."""
LISTED: Final = 6
"""Number of named variants without a ratio; the others are only counted."""
INCIDENTAL: Final = ("host", "libraries", "python", "kernel")
"""Facts that differ between any two hosts and explain no figure."""


@macro("machine_pairs")
def pairs(comparison: Comparison) -> str:
    """A comparison of every two machines, of which the page shows one at a time."""
    machines = comparison.machines
    if not machines:
        return NOTHING
    if len(machines) == 1:
        only = comparison.called(machines[0])
        return f"Only {only} has been measured, so there is no other machine to compare with."
    found = [
        (f"{comparison.called(one)} and {comparison.called(other)}", ratios)
        for one, other in combinations(machines, 2)
        if (ratios := _ranked(comparison, one, other))
    ]
    # assets/pairs.js adds a select; without it, the first pair is shown.
    parts = [
        f'<div class="hp-pair" data-pair="{escape(names)}"{" hidden" * (place > 0)} markdown>\n\n'
        f"{_pair(comparison, names, ratios)}\n\n</div>"
        for place, (names, ratios) in enumerate(found)
    ]
    return "\n\n".join(parts) or "No variant has been measured on two machines."


def _ranked(comparison: Comparison, one: Subject, other: Subject) -> list[Ratio]:
    """The ratios of two machines, the largest sure difference first."""
    return sorted(comparison.ratios(one, other), key=lambda each: each.rank, reverse=True)


def _pair(comparison: Comparison, names: str, ratios: Sequence[Ratio]) -> str:
    """A paragraph about two machines, and a table of the largest of their `ratios`: of those with
    enough runs, if there are any."""
    one, other = ratios[0].base, ratios[0].other
    tested = [each for each in ratios if each.judged]
    architectures = [
        comparison.inputs.machines.get(each.name, {}).get("arch") for each in (one, other)
    ]
    enough = "All have" if len(tested) == len(ratios) > 1 else f"{len(tested) or 'None'} with"
    sentences = [
        f"**{names}.**",
        f"{len(ratios)} variant{'s' * (len(ratios) > 1)} ran on both.",
        f"{enough} enough runs to compare{f': {_counts(tested)}' if tested else ''}.",
    ]
    if architectures[0] and architectures[0] == architectures[1]:
        sentences.append(f"Both GPUs have the same architecture, {code(architectures[0])}.")
    called = [comparison.called(each) for each in (one, other)]
    columns = ["variant", *(f"on {name}" for name in called), "verdict", "faster"]
    columns += ["times as fast", INTERVAL]
    rows = [_pair_row(each, called) for each in (tested or ratios)[:NAMED]]
    columns, rows = without_empty(columns, rows)
    numeric = [*columns[1:3], *columns[-2:]]
    return f"{' '.join(sentences)}\n\n{table(columns, rows, numeric=numeric)}"


def _pair_row(one: Ratio, called: Sequence[str]) -> list[object]:
    """A variant with its figure on both machines, and the faster one if they are different."""
    value, ends, faster = one.value, one.interval, called[0]
    if value < 1:
        value, ends, faster = 1 / value, (1 / ends[1], 1 / ends[0]), called[1]
    is_different = one.verdict in (FASTER, SLOWER)
    return [
        code(f"{one.of.study}/{one.of.variant.name}"),
        *(speed(each.payload_bytes, each.seconds) for each in (one.of, one.against)),
        DIFFERENT if is_different else one.verdict,
        faster if is_different else "",
        ratio(value),
        ratio_interval(*ends),
    ]


def _counts(tested: Sequence[Ratio]) -> str:
    """`3 are different, 2 are equal within 5 % and 1 is undecided`."""
    verdicts = Counter(DIFFERENT if r.verdict in (FASTER, SLOWER) else r.verdict for r in tested)
    return listing(
        [
            f"{verdicts[name]} {'is' if verdicts[name] == 1 else 'are'} {name}"
            for name in (DIFFERENT, EQUAL, UNCLEAR)
            if verdicts[name]
        ]
    )


@macro("machines_in_brief", may_be_empty=True)
def in_brief(comparison: Comparison) -> str:
    """Numbers of variants by verdict, and the largest difference, of the two machines with most
    tested variants; empty without any."""
    tested = [
        [each for each in _ranked(comparison, one, other) if each.judged]
        for one, other in combinations(comparison.machines, 2)
    ]
    ratios = max(tested, key=len, default=[])
    if not ratios:
        return ""
    first = ratios[0]
    called = [comparison.called(each) for each in (first.base, first.other)]
    counts = f"Of {len(ratios)} variants on {listing(called)}, {_counts(ratios)}"
    if first.verdict not in (FASTER, SLOWER):
        return f"{counts}."
    if first.verdict == SLOWER:
        called.reverse()
    times = times_phrase(max(first.value, 1 / first.value))
    name = code(f"{first.of.study}/{first.of.variant.name}")
    return f"{counts}. The largest difference: {name} is {times} as fast on {called[0]}."


@macro("machine_gaps")
def gaps(comparison: Comparison) -> str:
    """Variants that cannot be compared between two machines, with the reason."""
    parts = [_left_out(comparison, *pair) for pair in combinations(comparison.machines, 2)]
    unmeasured = {
        source: names
        for source in comparison.published
        if (names := comparison.unmeasured(source)) and comparison.machines
    }
    if unmeasured:
        items = [f"- {_title(source)}: {_few(names)}" for source, names in unmeasured.items()]
        parts.append("Published figures without a measurement here:\n\n" + "\n".join(items))
    return "\n\n".join(filter(None, parts)) or "All variants and published figures are compared."


def _title(source: Subject) -> Markup:
    """Title of a published source, without the prefix of its kind."""
    return plain(source.name.removeprefix(f"{PUBLISHED}: "))


def _few(names: Sequence[str]) -> str:
    """The first of `names`, and how many more there are."""
    rest = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"{joined(', ', map(code, names[:LISTED]))}{rest}"


def _left_out(comparison: Comparison, one: Subject, other: Subject) -> str:
    reasons = comparison.incomparable(one, other)
    if not reasons:
        return ""
    items = [
        f"- {len(names)} variant{'s' * (len(names) > 1)} {reason}: {_few(names)}"
        for reason, names in reasons.items()
    ]
    return f"{comparison.called(one)} and {comparison.called(other)}:\n\n" + "\n".join(items)


@macro("machine_figures")
def figures_table(comparison: Comparison) -> str | Markup:
    """Every variant's figure on every machine, with its share of that machine's ceiling."""
    machines = comparison.machines
    if not machines:
        return NOTHING
    groups = {}
    for facts in comparison.studies.values():
        rows = [
            [code(variant.name), *(_cell(facts, one, variant) for one in machines)]
            for variant in facts.study.subjects
        ]
        if filled := [row for row in rows if any(row[1:])]:
            groups[facts.study.title] = filled
    columns = ["variant", *map(comparison.called, machines)]
    return folded_tables(columns, groups, numeric=columns[1:])


def _cell(facts: StudyFacts, machine: Subject, variant: Variant) -> str:
    """The rate or time in the shown case, and its share of the fastest ceiling there."""
    row = facts.figures.time(machine.name, variant)
    if row is None:
        return ""
    case = facts.study.shown_case(variant)
    figure = speed(delivered_bytes(case, row.metric), row.median)
    if row.stale:
        return f"{figure} (stale)"
    share = facts.figures.limit_share(machine.name, variant, case, row.metric)
    shown = f"{figure} · {percent(share.share)}" if share else figure
    return with_interval(shown, "" if is_headline(row) else basis_phrase(row))


@macro("machine_differences")
def differences(inputs: Inputs) -> str:
    """Differences and common facts of the machines."""
    if not inputs.machines:
        return NOTHING
    described = {inputs.called(machine): facts for machine, facts in inputs.machines.items()}
    return _differing(described, list(described))


@macro("machine_hosts")
def hosts(comparison: Comparison) -> str:
    """The runs of each machine by host, and what differs between the hosts."""
    parts = []
    for machine in comparison.machines:
        found: dict[str, Mapping[str, Any]] = {}
        runs: dict[str, set[str]] = {}
        for run in comparison.inputs.runs_on(machine.name):
            found[run.host.id] = run.host.described()
            runs.setdefault(run.host.id, set()).add(run.start)
        called = comparison.host_names(machine)
        rows = [
            [
                called[host],
                listing(sorted({run[:10] for run in runs[host]})),
                str(len(runs[host])),
                str(len(comparison.figures.get(comparison.host(machine, host), {}))),
            ]
            for host in sorted(found)
        ]
        parts.append(f"### Hosts of {plain(comparison.called(machine))}")
        columns = ["host", "measured on", "runs", "figures"]
        parts.append(table(columns, rows, numeric=columns[2:]))
        if len(found) > 1:
            described = {called[host]: facts for host, facts in found.items()}
            parts.append(_differing(described, list(called.values())))
    return "\n\n".join(parts) or NOTHING


def _differing(described: Mapping[str, Mapping[str, Any]], names: Sequence[str]) -> str:
    """A table of facts that differ, and a sentence with those that do not."""
    facts = described_facts({name: described[name] for name in names})
    facts = {fact: v for fact, v in facts.items() if not fact.startswith(INCIDENTAL)}
    same = [f"{fact} {values[0]}" for fact, values in facts.items() if len(set(values)) == 1]
    rows = [[fact, *values] for fact, values in facts.items() if len(set(values)) > 1]
    parts: list[str] = [table(["", *names], rows)] if rows else []
    if same and len(names) > 1:
        parts.append(f"Equal on all: {plain(', '.join(same))}.")
    return "\n\n".join(parts)


@macro("machine_parameters")
def parameters_table(inputs: Inputs) -> str | Markup:
    """Link and translation of every machine."""
    found: dict[str, dict[str, str]] = {}
    for row in inputs.parameters:
        found.setdefault(inputs.called(row.machine), {})[row.parameter] = _parameter(row)
    rows = [
        [about.meaning, *(of_machine.get(name, "") for of_machine in found.values())]
        for name, about in ABOUT.items()
    ]
    rows = [row for row in rows if any(row[1:])]
    return table(["parameter", *found], rows, numeric=[*found]) if rows else ""


def _parameter(row: ParameterRow) -> str:
    """The value with its interval; with fewer than MIN_RUNS runs, with their number, because their
    interval says nothing about other hosts."""
    unit = row.unit if row.unit == "1" else row.unit.removeprefix("1")
    few = "one run" if row.runs == 1 else f"{row.runs} runs"
    interval = quantity_interval(row.value, row.ci_low, row.ci_high, unit)
    figure = quantity(row.value, unit)
    return with_interval(figure, interval if row.runs >= MIN_RUNS else few) if figure else ""


@macro()
def physical_machines(inputs: Inputs) -> str:
    """The physical machines; without one, the command that measures it."""
    physical = [name for name, one in inputs.machines.items() if one.get("hypervisor") is False]
    if physical:
        found = f"Physical machines: {listing([inputs.called(name) for name in physical])}."
        without = [
            inputs.called(name) for name in physical if inputs.machines[name].get("iommu") is False
        ]
        return f"{found} Without an IOMMU: {listing(without)}." if without else found
    studies = json.dumps(calibrating(inputs.studies))
    command = 'env/run snakemake --cores "$(nproc)" measure --config machine=my-box'
    return (
        "**A control is missing:** a physical machine, with its IOMMU on and off. All machines here"
        " are virtual, and their hosts' IOMMU cannot be set from within. So the host's share of a"
        " page walk is unknown. If you have a physical machine, this command measures link and"
        " translation, and writes results [to send](machines.md#another-machine):"
        f"\n\n```sh\n{command} 'studies={studies}'\n```\n\n"
        "For the other half of the control, boot with the kernel"
        " parameter `intel_iommu=off` or `amd_iommu=off`, and run it again as another `machine`."
    )
