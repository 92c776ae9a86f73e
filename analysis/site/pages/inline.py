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
    percent,
    quantity_interval,
    ratio_interval,
    runs_phrase,
    speed,
    with_interval,
)
from analysis.base.statistics import SAME_WITHIN
from analysis.site.facts.addresses import claim_anchor, samples_address
from analysis.site.facts.basis import is_headline, metric_spread, spread, with_basis
from analysis.site.facts.claims import UNDECIDED
from analysis.site.facts.figures import delivered_bytes
from analysis.site.facts.journeys import claim_result
from analysis.site.facts.points import shortest_time
from analysis.site.facts.rows import MeasuredRow, RatioRow
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.html import figure as data_of
from analysis.site.pages.html import with_data
from analysis.site.pages.page import Page, macro
from analysis.site.pages.templates import macros
from analysis.study import Case, CaseValue, case_id
from analysis.study.claims import Claim
from analysis.study.claims.verdicts import FAILS, HOLDS, NOT_TESTED

MARKS: Final = {HOLDS: "✓", FAILS: "✗", UNDECIDED: "?", NOT_TESTED: "–"}
_TEXT: Final = macros("text.html")


@macro("figure")
def figure(
    page: Page,
    facts: StudyFacts,
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
    case = _case(facts, variant, keys)
    machine = machine or page.machine(facts)
    of = facts.study.variant(variant)
    require_known("metric", metric or facts.study.metrics_for(of)[0], list(facts.study.metrics))
    names = [metric] if metric else facts.study.metrics_for(of)
    rows = (facts.figures.find(machine, variant, case.id, name) for name in names)
    row = next((row for row in rows if row is not None), None)
    if row is None:
        return page.missing(f"a figure of {variant} in {case.id} on {machine or 'any machine'}")
    write = facts.study.metrics[row.metric].write
    shown = _three_digits(write(row.median))
    interval = metric_spread(row, facts.study.metrics[row.metric])
    payload = delivered_bytes(case, row.metric)
    if payload and facts.figures.are_rates and not as_time:
        shown = speed(payload, row.median)
        interval = _rates(facts, case, row, payload)
    return _linked(page, facts, data_of(shown, row), row, case.id, interval)


@macro("ratio")
def ratio(
    page: Page,
    facts: StudyFacts,
    variant: str,
    over: str,
    metric: str = "",
    *,
    machine: str = "",
    percent: bool = False,
    **keys: CaseValue | None,
) -> Markup:
    """How many times as fast one variant is as another, such as `2.8 times`, paired within runs
    and linked to the samples. Stops the build without one, or if the first is the slower.

    variant: the faster one
    over: the slower one
    metric: as of `figure`
    machine: as of `figure`
    percent: the difference, such as `26 %`
    keys: as of `figure`
    """
    case = _case(facts, variant, keys)
    machine = machine or page.machine(facts)
    one, other = facts.study.variant(variant), facts.study.variant(over)
    names = [metric] if metric else facts.study.metrics_for(one, other)
    found = (_ratio(facts, (machine, variant, over, case.id, name)) for name in names)
    row = next((row for row in found if row is not None), None)
    pair = f"{variant} over {over} in {case.id}"
    if row is None:
        where = machine or "any machine"
        return page.missing(f"a ratio of {pair} on {where}, which study.yaml compares")
    value, low, high = row.ratio, row.ci_low, row.ci_high
    if row.variant == over:
        value, low, high = 1 / value, 1 / high, 1 / low
    if value < 1 - SAME_WITHIN:
        raise FieldError(f"ratio of {pair}", "the faster variant first", round(value, 4))
    shown = data_of(_difference(value) if percent else _times(value), row)
    return _linked(page, facts, shown, row, case.id, ratio_interval(low, high))


@macro("measured")
def measured(page: Page, facts: StudyFacts, claim: str) -> Markup:
    """The figure of a claim, linked to its line in the ledger; its title has interval and runs.
    Stops the build without one.

    claim: its id
    """
    result = claim_result(facts, _known_claim(facts, claim))
    if result is None or math.isnan(result.figures.measured):
        return page.missing(f"a figure of claim {claim}")
    interval = result.interval()
    named = f"{INTERVAL}: {interval}" if interval else ""
    basis = with_basis(result.figures, named, result.write)
    title = "; ".join(filter(None, [facts.inputs.called(result.row.machine), basis, claim]))
    parts = (result.row.machine, result.row.study, f"claim:{claim}", "value")
    shown = with_data(result.write(result.figures.measured), result.figures.measured, *parts)
    address = page.address(f"ledger/#{claim_anchor(facts.study.name, claim)}")
    return _TEXT.measured(address, title, bool(result.few), shown)


@macro("verdict")
def verdict(page: Page, facts: StudyFacts, *claims: str, expect: str = "any") -> Markup:
    """A mark for each machine behind a sentence: ✓ holds, ✗ does not hold, ? undecided, – not
    tested; linked to the ledger.

    claims: ids of the claims that the sentence rests on
    expect: `holds` or `does not hold` stops the build unless a machine decides each claim so, and
        none otherwise
    """
    require_known("expect", expect, ["any", HOLDS, FAILS])
    marks = []
    for name in claims:
        claim = _known_claim(facts, name)
        rows = {row.machine: row for row in facts.verdicts.by_claim.get(name, [])}
        verdicts = {machine: facts.verdicts.shown(row) for machine, row in rows.items()}
        decided = {*verdicts.values()} & {HOLDS, FAILS}
        if expect != "any" and page.staged.published and decided != {expect}:
            raise FieldError(f"verdict of {name}", expect, verdicts)
        address = page.address(f"ledger/#{claim_anchor(facts.study.name, name)}")
        for machine, found in verdicts.items():
            basis = runs_phrase(rows[machine].runs, rows[machine].hosts)
            where = f"{facts.inputs.called(machine)}: {found} ({basis})"
            kind = {HOLDS: " hp-holds", FAILS: " hp-fails"}.get(found, "")
            marks.append(_TEXT.mark(address, f"{claim.says} {where}", kind, MARKS[found]))
        if not rows:
            marks.append(_TEXT.mark(address, claim.says, "", MARKS[NOT_TESTED]))
    return Markup("").join(marks)


@macro("holds", may_be_empty=True)
def holds(facts: StudyFacts, claim: str) -> str:
    """`yes` if a claim holds on the machine with most evidence; else empty. Chooses a sentence.

    claim: its id
    """
    result = claim_result(facts, _known_claim(facts, claim))
    return "yes" if result is not None and result.row.verdict == HOLDS else ""


def _linked(
    page: Page,
    facts: StudyFacts,
    shown: Markup,
    row: MeasuredRow | RatioRow,
    case: str,
    interval: str,
) -> Markup:
    """The figure with a link to its samples, and a title with its basis."""
    few = "" if is_headline(row) else "too few for a headline"
    basis = runs_phrase(row.runs, row.hosts)
    stale = "stale" if isinstance(row, MeasuredRow) and row.stale else ""
    parts = [facts.inputs.called(row.machine), f"{INTERVAL}: {interval}" if interval else ""]
    title = "; ".join(filter(None, [*parts, with_interval(basis, few), stale, case]))
    path = samples_address(row.machine, row.study, row.variant, case, row.metric)
    return _TEXT.measured(page.address(path), title, bool(few or stale), shown)


def _rates(facts: StudyFacts, case: Case, row: MeasuredRow, payload: int) -> str:
    """The interval of a rate, or the rates of the runs; no end exceeds the limit."""
    longest, shortest = row.ci_high, shortest_time(facts.figures, case, row)[0]
    low, high = (payload / seconds for seconds in (longest, shortest))
    interval = quantity_interval(payload / row.median, low, high, "B/s")
    return spread(row, interval, lambda seconds: speed(payload, seconds))


def _ratio(facts: StudyFacts, key: tuple[str, str, str, str, str]) -> RatioRow | None:
    """The comparison of two variants, by either of them."""
    machine, variant, over, case, metric = key
    ratios = facts.figures.ratios
    return ratios.get(key) or ratios.get((machine, over, variant, case, metric))


def _times(value: float) -> str:
    """`2.8 times`, `1.07 times`, `11.6 times`."""
    return f"{digits(value, 2 if 1.2 <= value < 10 else 3)} times"


def _difference(value: float) -> str:
    return percent(value - 1)


def _three_digits(text: str) -> str:
    """`63.12 µs` as `63.1 µs`: a sentence needs no fourth digit."""
    number, space, unit = text.partition(" ")
    is_long = unit and sum(map(str.isdigit, number)) > 3 and "." in number
    return f"{digits(float(number))}{space}{unit}" if is_long else text


def _known_claim(facts: StudyFacts, claim: str) -> Claim:
    require_known("claim", claim, [known.id for known in facts.study.claims])
    return next(known for known in facts.study.claims if known.id == claim)


def _case(facts: StudyFacts, variant: str, keys: Mapping[str, CaseValue | None]) -> Case:
    """The case with the values of the variant's shown case and these `keys`."""
    require_known("variant", variant, facts.study.variant_names)
    of = facts.study.variant(variant)
    values = {**facts.study.shown_case(of).values, **keys}
    wanted = {key: value for key, value in values.items() if value is not None}
    cases = {case.id: case for case in of.cases if case.values == wanted}
    if not cases:
        require_known(f"case of {variant}", case_id(wanted), [case.id for case in of.cases])
    return next(iter(cases.values()))
