"""Sentences about measured figures, computed from the tables when the site is built."""

from __future__ import annotations

import math
from typing import Final

from analysis.base.quantities import (
    WITHIN,
    is_at_limit,
    listing,
    percent,
    percent_interval,
    ratio,
    ratio_interval,
    times_phrase,
    with_interval,
)
from analysis.site.facts.basis import (
    Based,
    agreed,
    basis_phrase,
    figures_by_run,
    inverse,
    is_headline,
    is_level,
    spread,
)
from analysis.site.facts.figures import LimitShare
from analysis.site.facts.rows import ClaimRow, RatioRow
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.cases import case_phrase
from analysis.site.pages.html import gap, plain
from analysis.study import Variant
from analysis.study.claims.kinds import Speedup

SPEED: Final = "speed"
RATE: Final = "payload rate"
FEW: Final = "too few for a verdict"
FASTER: Final = "be anything from {} slower to {} faster"
LONGER: Final = "take anything from {} less to {} more time"
"Ends of an interval around 1, of speeds and of times."
NOTHING: Final = gap("No machine has been measured yet.")


def step_sentence(facts: StudyFacts, machine: str, variant: Variant) -> str:
    """One sentence that compares `variant` with its `after` on `machine`, in Markdown.

    Empty without a baseline if nothing is missing or stale.
    """
    start = f"On {facts.inputs.called(machine)} "
    if variant.after is None:
        missing = _missing(facts, machine, variant)
        return start + missing if missing else ""
    row = _gain(facts, machine, variant)
    if row is not None:
        phrase = comparison_phrase(row, _this(variant), *_measured_by(facts, row))
        opposite = _opposite(facts, row)
        return f"{_where(facts, machine, row.case, row)}{phrase}.{opposite}"
    for one in (variant, facts.study.variant(variant.after)):
        missing = _missing(facts, machine, one)
        if missing:
            return start + missing
    return f"{start}no run has measured both `{variant.name}` and `{variant.after}`."


def _gain(facts: StudyFacts, machine: str, variant: Variant) -> RatioRow | None:
    """The comparison of `variant` with its `after`."""
    before = facts.study.variant(variant.after) if variant.after else None
    return facts.figures.comparison(machine, variant, before) if before else None


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
    figure = _figure(farthest, RATE if facts.figures.is_of_rates(farthest) else SPEED)
    case = case_phrase(facts.study, farthest.case)
    return (
        f" Cases disagree: it is {opposite} in {len(others)} of {len(same_pair)}."
        f" {case[0].upper()}{case[1:]}, against `{row.against}`: {figure}."
    )


def result_sentence(facts: StudyFacts, machine: str, variant: Variant) -> str:
    """Gain of `variant` over its `after`, and its share of the limit, in Markdown.

    Empty if neither is known.
    """
    gain = step_sentence(facts, machine, variant)
    limit = facts.figures.reached(machine, variant)
    if limit is None:
        return gain
    reached = _reached(limit)
    if gain:
        row = _gain(facts, machine, variant)
        is_by_one_clock = row is None or row.metric == limit.metric
        by = "" if is_by_one_clock else f" by {facts.study.metrics[limit.metric].clock}"
        return f"{gain} It {reached}{by}."
    time = facts.figures.time(machine, variant)
    where = _where(facts, machine, facts.study.shown_case(variant).id, time)
    return f"{where}{_this(variant)} {reached}."


def _reached(limit: LimitShare) -> str:
    """`reaches 80 % of the rate of ...`. A ceiling that is exceeded is no limit."""
    rate = f"the rate of `{limit.ceiling}`"
    if is_at_limit(limit.share):
        return f"reaches {rate}"
    exceeded = ", so that is a reference and no limit" * (limit.share > 1)
    return f"reaches {percent(limit.share)} of {rate}{exceeded}"


def reach_sentence(facts: StudyFacts, machine: str, other: Variant) -> str:
    """Comparison of the fastest step on `machine` with `other`; empty if there is none."""
    best = facts.ranking.fastest(machine)
    if best is None or (row := facts.figures.comparison(machine, best, other)) is None:
        return ""
    measure, clock = _measured_by(facts, row)
    kind = "step" if best.role == "step" else "variant beyond the steps"
    is_longer = measure == SPEED and row.ratio < 1
    compared = (
        f"takes {_times(1 / row.ratio, inverse(row))} as long as"
        if is_longer
        else f"has {_of_speed(row)} the {measure} of"
    )
    return (
        f"{_where(facts, machine, row.case, row)}the fastest {kind},"
        f" {fastest_phrase(facts, machine, best)}, {compared} `{other.name}` by {clock}."
    )


def _where(facts: StudyFacts, machine: str, case: str, row: Based | None) -> str:
    """Beginning of a sentence about `case` and the figure `row`; the headline case is not named."""
    basis = basis_phrase(row) if row is not None else ""
    where = f"On {with_interval(facts.inputs.called(machine), basis)}"
    is_shown = case == facts.study.headline
    return f"{where} " if is_shown else f"{where}, {case_phrase(facts.study, case)}, "


def _measured_by(facts: StudyFacts, row: RatioRow) -> tuple[str, str]:
    """The compared quantity of a ratio, and the label of its clock."""
    measure = RATE if facts.figures.is_of_rates(row) else SPEED
    return measure, facts.study.metrics[row.metric].label


def _this(variant: Variant) -> str:
    """`this step` for a step of the journey, `this variant` for others."""
    return "this step" if variant.role == "step" else "this variant"


def fastest_phrase(facts: StudyFacts, machine: str, best: Variant) -> str:
    """Name of the fastest step in Markdown, with the steps that are measurably no slower."""
    row = facts.ranking.time(machine, best)
    if row is not None and not is_headline(row) and facts.ranking.contenders(machine)[1:]:
        few = basis_phrase(row)
        return f"`{best.name}` (without a verdict on the other steps: only {few})"
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


def _of_speed(row: RatioRow) -> str:
    """`2.80 times (2.70 to 2.90)`; a ratio below 1 as `94 % (93 % to 97 %) of`."""
    if row.ratio >= 1:
        return _times(row.ratio, row)
    interval = percent_interval(row.ratio, row.ci_low, row.ci_high)
    return f"{with_interval(percent(row.ratio), spread(row, interval, percent))} of"


def comparison_phrase(row: RatioRow, this: str, measure: str, clock: str) -> str:
    """`this step is 3.91 times (3.87 to 3.95) as fast as ... by device time`, according to the
    row's verdict, which only enough runs in one group allow; `measure` is SPEED or RATE."""
    other = f"`{row.against}`"
    match row.verdict if is_headline(row) else "unclear":
        case "same":
            same = f"has the {RATE} of" if measure == RATE else "is as fast as"
            return f"{this} {same} {other} within {WITHIN}: {_figure(row, measure)} by {clock}"
        case "faster" | "slower" if measure == RATE:
            but = _other_runs(row, FASTER)
            figure = times_phrase(row.ratio) if but and row.ratio >= 1 else _of_speed(row)
            return f"{this} has {figure} the {RATE} of {other} by {clock}{but}"
        case "faster":
            figure, but = _decided(row, FASTER)
            return f"{this} is {figure} as fast as {other} by {clock}{but}"
        case "slower":
            figure, but = _decided(inverse(row), LONGER)
            return f"{this} is slower than {other}: it takes {figure} as long by {clock}{but}"
    return f"{_undecided(row, this, other, measure)}: {_figure(row, measure)} by {clock}"


def _figure(row: RatioRow, measure: str) -> str:
    """`1.02× its speed (0.98 to 1.05)`; a speed below 1 as `2.20 times as long (2.00 to 2.40)`."""
    if measure == SPEED and row.ratio < 1:
        row = inverse(row)
        figure = f"it takes {times_phrase(row.ratio)} as long"
    else:
        figure = f"{ratio(row.ratio)} its {measure}"
    return with_interval(figure, spread(row, ratio_interval(row.ci_low, row.ci_high), ratio))


def _undecided(row: RatioRow, this: str, other: str, measure: str) -> str:
    """The reason why there is no verdict, after the direction in which all runs agree, if any."""
    if not is_headline(row) and (direction := agreed(row)):
        runs = len(figures_by_run(row))
        where = {1: "the only run", 2: "both runs"}.get(runs, f"all {runs} runs")
        higher = {"faster": "has a higher", "slower": "has a lower"}[direction]
        compared = f"{higher} {RATE}" if measure == RATE else f"is {direction}"
        return f"{this} {compared} than {other} in {where} ({FEW})"
    if not is_headline(row):
        return f"there is no verdict on {this} and {other}, since the runs are {FEW}"
    if is_level(row):
        return f"there is no measurable difference between {this} and {other}"
    return f"there is no verdict, since either {this} or {other} may be faster in another run"


def _decided(row: RatioRow, words: str) -> tuple[str, str]:
    """A decided ratio with its interval or runs, and a clause about other runs.

    The interval predicts another run, while the verdict is about the mean over the measured runs.
    So an interval that contains 1 goes into the clause, in `words`.
    """
    but = _other_runs(row, words)
    return times_phrase(row.ratio) if but else _times(row.ratio, row), but


def _other_runs(row: RatioRow, words: str) -> str:
    """The clause of `_decided`; empty for an interval that does not contain 1."""
    if not row.ci_low <= 1 <= row.ci_high:
        return ""
    further = words.format(percent(1 - row.ci_low), percent(row.ci_high - 1))
    return f" in these {row.runs} runs; a further run may {further}"


def _missing(facts: StudyFacts, machine: str, variant: Variant) -> str:
    """Reason for a missing or stale figure of the shown case; empty for a fresh one."""
    row = facts.figures.time(machine, variant)
    name = f"`{variant.name}`"
    if row is None:
        case = facts.study.shown_case(variant)
        if (machine, variant.name, case.id) in facts.figures.measured_cases:
            return ""  # by other metrics than times
        absence = facts.figures.absence(machine, variant, case)
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
    in_headline = [
        step
        for step in facts.study.with_role("step")
        if facts.study.shown_case(step).id == facts.study.headline
    ]
    for machine in facts.machines:
        metric = facts.figures.shared_metric(machine, in_headline)
        steps = [
            (step, row.median)
            for step in in_headline
            if (row := facts.figures.metric(machine, step, metric)) is not None and not row.stale
        ]
        slower = []
        for index, (later, _) in enumerate(steps):
            faster = [
                f"`{earlier.name}`"
                for earlier, _ in steps[:index]
                if facts.ranking.is_surely_faster(machine, earlier, later, metric)
            ]
            if faster:
                slower.append(f"`{later.name}` is slower than {listing(faster)}")
        if slower:
            by_time = sorted(steps, key=lambda step: step[1], reverse=True)
            names = listing([f"`{step.name}`" for step, _ in by_time])
            clock = facts.study.metrics[metric].clock
            sentences.append(
                f"On {facts.inputs.called(machine)}, some steps are slower than earlier ones:"
                f" {'; '.join(slower)}. From slowest to fastest by {clock}, the steps are {names}."
            )
    return sentences
