"""Sentences about measured figures, computed from the tables when the site is built."""

from __future__ import annotations

import math
from typing import Final

from analysis.base.quantities import (
    WITHIN,
    is_at_limit,
    listing,
    percent,
    ratio,
    ratio_interval,
    times_phrase,
    with_interval,
)
from analysis.site.facts.basis import Based, basis_phrase, inverse, is_settled, spread
from analysis.site.facts.rows import ClaimRow, RatioRow
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.html import plain
from analysis.study import Variant
from analysis.study.claims.kinds import Speedup

SPEED: Final = "speed"
RATE: Final = "payload rate"
LESS: Final = 0.9
"""A lower ratio of speeds is written as a ratio of times. An undecided ratio between this and its
inverse is no measurable difference."""
NOTHING: Final = "No machine has been measured yet."


def step_sentence(facts: StudyFacts, machine: str, variant: Variant) -> str:
    """One sentence that compares `variant` with its `after` on `machine`, in Markdown.

    Empty without a baseline if nothing is missing or stale.
    """
    start = f"On {facts.inputs.called(machine)} "
    if variant.after is None:
        missing = _missing(facts, machine, variant)
        return start + missing if missing else ""
    before = facts.study.variant(variant.after)
    row = facts.figures.comparison(machine, variant, before)
    if row is not None:
        phrase = comparison_phrase(row, _this(variant), *_measured_by(facts, row))
        opposite = _opposite(facts, row)
        return f"{_where(facts, machine, row.case, row)}{phrase}.{opposite}"
    for one in (variant, before):
        missing = _missing(facts, machine, one)
        if missing:
            return start + missing
    return f"{start}no run has measured both `{variant.name}` and `{before.name}`."


def _opposite(facts: StudyFacts, row: RatioRow) -> str:
    """A sentence with the cases that have the opposite verdict; empty without any."""
    opposite = {"faster": "slower", "slower": "faster"}.get(row.verdict)
    same_pair = [
        one
        for one in facts.figures.ratios.values()
        if (one.machine, one.variant, one.against, one.metric)
        == (row.machine, row.variant, row.against, row.metric)
    ]
    others = [one for one in same_pair if one.verdict == opposite]
    if not others:
        return ""
    farthest = max(others, key=lambda one: abs(math.log(one.ratio)))
    figure = with_interval(ratio(farthest.ratio), ratio_interval(farthest.ci_low, farthest.ci_high))
    return (
        f" Cases disagree: it is {opposite} in {len(others)} of {len(same_pair)},"
        f" {figure} the speed of `{row.against}` in case `{farthest.case}`."
    )


def result_sentence(facts: StudyFacts, machine: str, variant: Variant) -> str:
    """Gain of `variant` over its `after`, and its share of the limit, in Markdown.

    Empty if neither is known.
    """
    gain = step_sentence(facts, machine, variant)
    limit = facts.figures.reached(machine, variant)
    if limit is None:
        return gain
    share = "" if is_at_limit(limit.share) else f"{percent(limit.share)} of "
    reached = f"{share}the rate of `{limit.ceiling}`"
    if gain:
        return f"{gain} It reaches {reached}."
    row = facts.figures.time(machine, variant)
    where = _where(facts, machine, facts.study.shown_case(variant).id, row)
    return f"{where}{_this(variant)} reaches {reached}."


def reach_sentence(facts: StudyFacts, machine: str, other: Variant) -> str:
    """Comparison of the fastest step on `machine` with `other`; empty if there is none."""
    best = facts.ranking.fastest(machine)
    if best is None or (row := facts.figures.comparison(machine, best, other)) is None:
        return ""
    measure, clock = _measured_by(facts, row)
    kind = "step" if best.role == "step" else "variant beyond the steps"
    is_longer = measure == SPEED and row.ratio < LESS
    compared = (
        f"takes {_times(1 / row.ratio, inverse(row))} as long as"
        if is_longer
        else f"has {_times(row.ratio, row)} the {measure} of"
    )
    return (
        f"{_where(facts, machine, row.case, row)}the fastest {kind},"
        f" {fastest_phrase(facts, machine, best)}, {compared} `{other.name}` by {clock}."
    )


def _where(facts: StudyFacts, machine: str, case: str, row: Based | None) -> str:
    """Beginning of a sentence about `case` and the figure `row`; the headline case is not named."""
    basis = basis_phrase(row) if row is not None else ""
    where = f"On {with_interval(facts.inputs.called(machine), basis)}"
    return f"{where} " if case == facts.study.headline else f"{where}, in case `{case}`, "


def _measured_by(facts: StudyFacts, row: RatioRow) -> tuple[str, str]:
    """The compared quantity of a ratio, and the label of its clock."""
    measure = RATE if facts.figures.is_of_rates(row) else SPEED
    return measure, facts.study.metrics[row.metric].label


def _this(variant: Variant) -> str:
    """`this step` for a step of the journey, `this variant` for others."""
    return "this step" if variant.role == "step" else "this variant"


def fastest_phrase(facts: StudyFacts, machine: str, best: Variant) -> str:
    """Name of the fastest step in Markdown, with the steps that are measurably no slower."""
    ties = listing([f"`{other.name}`" for other in facts.ranking.ties(machine)])
    return f"`{best.name}`" + (f" (no measurable difference from {ties})" if ties else "")


def headroom_sentence(facts: StudyFacts, machine: str, claim: ClaimRow, bound: str) -> str:
    """A claimed speed-up, and its upper limit if the variant became faster by the factor `bound`.

    `claim` has the figure of a speed-up. Empty if one of the two is missing.
    """
    known = next(known for known in facts.study.claims if known.id == claim.claim)
    test = known.tests[0]
    if not isinstance(test, Speedup):
        return ""
    row = facts.figures.find(machine, test.of, test.case, bound)
    if row is None or row.stale or math.isnan(claim.measured):
        return ""
    label = facts.study.metrics[bound].label.capitalize()
    limit = spread(row, ratio_interval(row.ci_low, row.ci_high), ratio)
    return (
        f"{_where(facts, machine, test.case, claim)}`{test.of}` has"
        f" {_times(claim.measured, claim)} the speed of `{test.over}`."
        f" {label}: {with_interval(ratio(row.median), limit)}, that is"
        f" {times_phrase(claim.measured * row.median)} the speed of `{test.over}`."
    )


def _times(value: float, row: RatioRow | ClaimRow) -> str:
    """`2.80 times (2.70 to 2.90)`; without an interval, the figures of the runs."""
    return with_interval(
        times_phrase(value), spread(row, ratio_interval(row.ci_low, row.ci_high), ratio)
    )


def comparison_phrase(row: RatioRow, this: str, measure: str, clock: str) -> str:
    """`this step is 3.91 times (3.87 to 3.95) as fast as ... by device time`, according to the
    row's verdict; `measure` is SPEED or RATE."""
    other = f"`{row.against}`"
    match row.verdict:
        case "same":
            same = f"has the {RATE} of" if measure == RATE else "is as fast as"
            return f"{this} {same} {other} within {WITHIN}: {_figure(row, measure)} by {clock}"
        case "faster" | "slower" if measure == RATE:
            figure, but = _decided(row)
            return f"{this} has {figure} the {RATE} of {other} by {clock}{but}"
        case "faster":
            figure, but = _decided(row)
            return f"{this} is {figure} as fast as {other} by {clock}{but}"
        case "slower":
            figure, but = _decided(inverse(row))
            return f"{this} is slower than {other}: it takes {figure} as long by {clock}{but}"
    return f"{_undecided(row, this, other)}: {_figure(row, measure)} by {clock}"


def _figure(row: RatioRow, measure: str) -> str:
    """`1.02× its speed (0.98 to 1.05)`; a low speed as `2.20 times as long (2.00 to 2.40)`."""
    if measure == SPEED and row.ratio < LESS:
        row = inverse(row)
        figure = f"it takes {times_phrase(row.ratio)} as long"
    else:
        figure = f"{ratio(row.ratio)} its {measure}"
    return with_interval(figure, spread(row, ratio_interval(row.ci_low, row.ci_high), ratio))


def _undecided(row: RatioRow, this: str, other: str) -> str:
    """The reason why neither of two variants is called the faster."""
    if row.modes > 1:
        return (
            f"neither {this} nor {other} is called the faster, since the ratios of the rounds have"
            " several modes"
        )
    if not is_settled(row):
        return f"it is undecided whether {this} or {other} is the faster"
    if row.ci_low >= LESS and row.ci_high <= 1 / LESS:
        return f"there is no measurable difference between {this} and {other}"
    return f"another run may show {this} or {other} as the faster"


def _decided(row: RatioRow) -> tuple[str, str]:
    """A decided ratio with its interval or runs, and a clause about other runs.

    The interval predicts another run, while the verdict is about the mean over the measured runs.
    So an interval that contains 1 goes into the clause.
    """
    interval = ratio_interval(row.ci_low, row.ci_high)
    if not row.ci_low <= 1 <= row.ci_high:
        return with_interval(times_phrase(row.ratio), spread(row, interval, ratio)), ""
    runs = f"{row.verdict} in all {row.runs} runs"
    return times_phrase(row.ratio), f"; {runs}, but another run may show {interval}×"


def _missing(facts: StudyFacts, machine: str, variant: Variant) -> str:
    """Reason for a missing or stale figure of the shown case; empty for a fresh one."""
    row = facts.figures.time(machine, variant)
    name = f"`{variant.name}`"
    if row is None:
        absence = facts.figures.absence(machine, variant, facts.study.shown_case(variant))
        if absence.reason:
            return f"{name} was {absence.state}: {plain(absence.reason)}."
        return f"{name} has not been measured."
    if row.stale:
        return f"the result of {name} is stale: its code has changed since the measurement."
    return ""


def order_sentences(facts: StudyFacts) -> list[str]:
    """A sentence for each machine with a step that is measurably slower than an earlier one.

    Variants beyond the journey, or without the headline case, are left out.
    """
    sentences = []
    for machine in facts.machines:
        steps = [
            (step, row.median)
            for step in facts.study.with_role("step")
            if facts.study.shown_case(step).id == facts.study.headline
            and (row := facts.figures.time(machine, step)) is not None
            and not row.stale
        ]
        slower = []
        for index, (later, _) in enumerate(steps):
            faster = [
                f"`{earlier.name}`"
                for earlier, _ in steps[:index]
                if facts.ranking.is_surely_faster(machine, earlier, later)
            ]
            if faster:
                slower.append(f"`{later.name}` is slower than {listing(faster)}")
        if slower:
            by_time = sorted(steps, key=lambda step: step[1], reverse=True)
            names = listing([f"`{step.name}`" for step, _ in by_time])
            sentences.append(
                f"On {facts.inputs.called(machine)}, some steps are slower than earlier ones:"
                f" {'; '.join(slower)}. From slowest to fastest, the steps are {names}."
            )
    return sentences
