"""Measured figures and verdicts within a sentence of any page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from markupsafe import Markup

from analysis.base.errors import FieldError, require_known
from analysis.base.quantities import (
    INTERVAL,
    digits,
    quantity_interval,
    ratio_interval,
    runs_phrase,
    speed,
    with_interval,
)
from analysis.base.statistics import SAME_WITHIN
from analysis.results.tables.rows import RatioRow
from analysis.site.facts.addresses import claim_anchor, samples_address
from analysis.site.facts.basis import WIDE, basis_phrase, in_few, is_headline, spread
from analysis.site.facts.claims import PUBLISHED, UNDECIDED, written_interval
from analysis.site.facts.inputs import MeasuredRow
from analysis.site.facts.journeys import machines_by_evidence
from analysis.site.facts.points import shortest_time
from analysis.site.facts.study_facts import StudyFacts, delivered_bytes
from analysis.site.pages.html import element, with_data
from analysis.site.pages.html import figure as data_of
from analysis.site.pages.page import Page, macro
from analysis.study import Case, CaseValue, case_id
from analysis.study.claims import Claim
from analysis.study.claims.verdicts import FAILS, HOLDS, NOT_TESTED

DIFFERENT: Final = "different"
"""Of verdicts that differ between claims or machines."""
MARKS: Final = {HOLDS: "✓", FAILS: "✗", UNDECIDED: "?", NOT_TESTED: "–", DIFFERENT: "≠"}
KINDS: Final = {HOLDS: " hp-holds", FAILS: " hp-fails"}
"""Classes of verdicts."""


@macro
def figure(
    page: Page,
    variant: str,
    metric: str = "",
    *,
    machine: str = "",
    as_time: bool = False,
    **keys: CaseValue | None,
) -> Markup:
    """A measured figure such as `48.4 GB/s`, linked to its samples; its title has interval and
    runs. Stops the build without a figure.

    variant: its name
    metric: name of a metric; by default, the clock by which the study compares the variant
    machine: folder of its results; by default, the published one with most evidence
    as_time: the time, also where the study shows rates
    keys: values of keys of the case that differ from the headline case; None for a key that the
        case lacks
    """
    facts = page.facts
    case, row = _measured_row(page, variant, metric, machine, keys)
    shown, interval = figure_words(facts, case, row, as_time=as_time)
    return _linked(page, data_of(_three_digits(shown), row), row, interval)


@macro
def runs(
    page: Page, variant: str, metric: str = "", *, machine: str = "", **keys: CaseValue | None
) -> str:
    """The runs and hosts that a figure is based on, such as `5 runs, 4 hosts`.

    variant, metric, machine, keys: as of `figure`
    """
    return basis_phrase(_measured_row(page, variant, metric, machine, keys)[1])


@macro
def ratio(
    page: Page, variant: str, over: str, metric: str = "", **keys: CaseValue | None
) -> Markup:
    """How many times as fast one variant is as another, such as `2.8 times`, paired within runs
    and linked to the samples. Stops the build without one, or if the first is the slower.

    variant: the faster one
    over: the slower one
    metric: as of `figure`
    keys: as of `figure`
    """
    facts = page.facts
    case, machine, pair = _case(facts, variant, keys), page.machine, (variant, over)
    names = [metric] if metric else facts.study.metrics_for(*map(facts.study.variant, pair))
    places = [(machine, *order, case.id, name) for name in names for order in (pair, pair[::-1])]
    row = next((facts.ratios[place] for place in places if place in facts.ratios), None)
    called = f"ratio of {variant} over {over} in {case.id}"
    if row is None:
        raise page.missing(f"a {called} on {machine or 'any machine'}, which study.yaml compares")
    value, low, high = row.ratio, row.ci_low, row.ci_high
    if row.variant == over:
        value, low, high = 1 / value, 1 / high, 1 / low
    if value < 1 - SAME_WITHIN:
        raise FieldError(called, "the faster variant first", round(value, 4))
    times = f"{digits(value, 2 if 1.2 <= value < 10 else 3)} times"
    return _linked(page, data_of(times, row), row, ratio_interval(low, high))


@macro
def measured(page: Page, claim: str) -> Markup:
    """The figure of a claim, linked to its line in the ledger; its title has interval and runs.
    Stops the build without one.

    claim: its id
    """
    known = _known_claim(page.facts, claim)
    rows = {row.machine: row for row in page.facts.verdicts.by_claim.get(claim, [])}
    row = next((rows[one] for one in machines_by_evidence(page.facts) if one in rows), None)
    parts = page.facts.verdicts.parts.get((claim, row.machine), []) if row else []
    figures = next((part for part in parts if part.part == 1), row)
    if row is None or figures is None or math.isnan(figures.measured):
        raise page.missing(f"a figure of claim {claim}")
    test = known.tests[0]
    interval = written_interval(test, figures)
    interval = interval and f"{INTERVAL}: {interval}"
    runs = spread(figures, interval, test.write)
    about = [page.inputs.called(row.machine), runs, basis_phrase(figures), claim]
    title = "; ".join(filter(None, about))
    value, place = figures.measured, (row.machine, row.study, f"claim:{claim}", "value")
    shown = with_data(test.write(value), value, *place)
    is_of_few = bool(row.runs and in_few(*page.facts.verdicts.basis(row)))
    return _anchor(_ledger(page, claim), title, is_of_few, shown)


@macro
def verdict(page: Page, *claims: str) -> Markup:
    """A mark behind a sentence: ✓ holds, ✗ does not hold, ? undecided, – not tested, ≠ where
    claims or machines differ. Machines that have not tested a claim count only if none has. It
    leads to the first claim in the ledger; its title has every verdict.

    claims: ids of the claims that the sentence rests on
    """
    measured_on = {PUBLISHED, *(machine for machine, *_ in page.facts.measured)}
    about: list[str] = []
    found: set[str] = set()
    for name in claims:
        about.append(_known_claim(page.facts, name).says)
        rows = page.facts.verdicts.by_claim.get(name, [])
        rows = [row for row in rows if row.machine in measured_on]
        shown = {page.inputs.called(row.machine): page.facts.verdicts.shown(row) for row in rows}
        about.append(f"{', '.join(map(': '.join, shown.items())) or NOT_TESTED}.")
        found |= {*shown.values()}
    kinds = found - {NOT_TESTED} or {NOT_TESTED}
    kind, title = kinds.pop() if len(kinds) == 1 else DIFFERENT, " ".join(about)
    style, href = f"hp-mark{KINDS.get(kind, '')}", _ledger(page, claims[0])
    return element("a", MARKS[kind], class_=style, href=href, title=title, aria_label=title)


def figure_words(
    facts: StudyFacts, case: Case, row: MeasuredRow, *, as_time: bool = False
) -> tuple[str, str]:
    """A figure, a rate unless `as_time`, and its interval or runs; no rate's end exceeds the limit.
    If the ends differ by more than WIDE, they are the figure with two digits each."""
    metric, low, high = facts.study.metrics[row.metric], row.ci_low, row.ci_high
    payload = delivered_bytes(case, row.metric)
    if payload:
        low = shortest_time(facts, case, row)[0]
    payload *= facts.are_rates and not as_time

    def write(value: float) -> str:
        return speed(payload, value) if payload else metric.write(value)

    def interval(low: float, high: float) -> str:
        if not payload:
            return quantity_interval(row.median, low, high, metric.written_unit)
        return quantity_interval(payload / row.median, payload / high, payload / low, "B/s")

    shown, ends = write(row.median), interval(low, high)
    if 0 < low * WIDE < high:
        return interval(*(float(f"{end:.1e}") for end in (low, high))), f"{ends}, median {shown}"
    return shown, spread(row, ends, write)


def _linked(page: Page, shown: Markup, row: MeasuredRow | RatioRow, interval: str) -> Markup:
    """The figure with a link to its samples, and a title with its basis."""
    few = "" if is_headline(row) else "too few for a headline"
    basis = runs_phrase(row.runs, row.hosts)
    stale = "stale" if isinstance(row, MeasuredRow) and row.stale else ""
    parts = [page.inputs.called(row.machine), interval and f"{INTERVAL}: {interval}"]
    title = "; ".join(filter(None, [*parts, with_interval(basis, few), stale, row.case]))
    path = samples_address(row.machine, row.study, row.variant, row.case, row.metric)
    return _anchor(page.address(path), title, bool(few or stale), shown)


def _anchor(address: str, title: str, is_weak: bool, shown: Markup) -> Markup:
    kind = f"hp-figure{' hp-few' * is_weak}"
    return element("a", shown, class_=kind, href=address, title=title)


def _ledger(page: Page, claim: str) -> str:
    return page.address(f"ledger/#{claim_anchor(page.facts.study.name, claim)}")


def _three_digits(text: str) -> str:
    """`63.12 µs` as `63.1 µs`: a sentence needs no fourth digit."""
    number, space, unit = text.partition(" ")
    is_long = unit and sum(map(str.isdigit, number)) > 3 and "." in number
    return f"{digits(float(number))}{space}{unit}" if is_long else text


def _known_claim(facts: StudyFacts, claim: str) -> Claim:
    claims = {known.id: known for known in facts.study.claims}
    require_known("claim", claim, claims)
    return claims[claim]


def _measured_row(
    page: Page, variant: str, metric: str, machine: str, keys: Mapping[str, CaseValue | None]
) -> tuple[Case, MeasuredRow]:
    """A case and its row of the summary, by `metric` or else the clock that compares the variant;
    MissingError without one."""
    facts = page.facts
    case = _case(facts, variant, keys)
    machine = machine or page.machine
    names = [metric] if metric else facts.study.metrics_for(facts.study.variant(variant))
    require_known("metric", names[0], list(facts.study.metrics))
    rows = (facts.find(machine, variant, case.id, name) for name in names)
    row = next(filter(None, rows), None)
    if row is None:
        raise page.missing(f"a figure of {variant} in {case.id} on {machine or 'any machine'}")
    return case, row


def _case(facts: StudyFacts, variant: str, keys: Mapping[str, CaseValue | None]) -> Case:
    """The case with the values of the variant's shown case and these `keys`."""
    require_known("variant", variant, facts.study.variant_names)
    of = facts.study.variant(variant)
    values = {**facts.study.shown_case(of).values, **keys}
    wanted = {key: value for key, value in values.items() if value is not None}
    found = next((case for case in of.cases if case.values == wanted), None)
    if found is None:
        known = f"one of {[case.id for case in of.cases]}"
        raise FieldError(f"case of {variant}", known, case_id(wanted))
    return found
