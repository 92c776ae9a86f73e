"""Sentences about what was measured, made from the tables when the site is built."""

from __future__ import annotations

import math

from analysis.claims.kinds import Speedup
from analysis.facts.points import Context, Row
from analysis.quantities import WITHIN, listing, ratio, ratio_interval
from analysis.study import Variant


def step_sentence(context: Context, machine: str, variant: Variant) -> str:
    """One sentence on `variant` against its `after` on `machine`, in Markdown.

    Empty where there is nothing to compare with and nothing amiss.
    """
    start = f"On {machine} "
    if variant.after is None:
        missing = _missing(context, machine, variant)
        return start + missing if missing else ""
    before = context.study.variant(variant.after)
    row = context.comparison(machine, variant, before)
    if row is not None:
        clock = context.study.metrics[row["metric"]].label
        return f"{start}{comparison_phrase(row, before.name, _this(variant))} by {clock}."
    for one in (variant, before):
        missing = _missing(context, machine, one)
        if missing:
            return start + missing
    return f"{start}`{variant.name}` and `{before.name}` have not been measured in one run."


def reach_sentence(context: Context, machine: str, other: Variant) -> str:
    """How the fastest step on `machine` stands to a reference or ceiling; empty where unknown."""
    best = context.fastest(machine)
    if best is None or (row := context.comparison(machine, best, other)) is None:
        return ""
    interval = ratio_interval(float(row["ci_low"]), float(row["ci_high"]))
    clock = context.study.metrics[row["metric"]].label
    within = f" ({interval})" if interval else ""
    kind = "step" if best.role == "step" else "variant beyond the steps"
    return (
        f"On {machine} the fastest {kind}, {fastest_phrase(context, machine, best)}, has"
        f" {ratio(float(row['ratio']))}{within} its speed by {clock}."
    )


def _this(variant: Variant) -> str:
    """Only what is told in the journey is a step of it."""
    return "this step" if variant.role == "step" else "this variant"


def fastest_phrase(context: Context, machine: str, best: Variant) -> str:
    """The name of the fastest step in Markdown, with those that it cannot be told apart from."""
    ties = listing([f"`{other.name}`" for other in context.ties(machine)])
    return f"`{best.name}`" + (f" (not told apart from {ties})" if ties else "")


def headroom_sentence(context: Context, machine: str, claim: Row, bound: str) -> str:
    """What `bound`, a factor that a variant could be faster by, would make of a claimed speed-up.

    `claim` is a row of claims.csv with the figure of a speed-up. Empty where one is missing.
    """
    known = next(known for known in context.study.claims if known.id == claim["claim"])
    test = known.tests[0]
    if not isinstance(test, Speedup):
        return ""
    row = context.summary.get((machine, test.of, test.case, bound))
    if row is None or row["stale"] or math.isnan(float(claim["measured"])):
        return ""
    factor, gained = float(row["median"]), float(claim["measured"])
    label = context.study.metrics[bound].label.capitalize()
    return (
        f"On {machine} `{test.of}` has {_with_interval(gained, claim)} the speed of `{test.over}`."
        f" {label}: {_with_interval(factor, row)}, and then {ratio(gained * factor)}."
    )


def _with_interval(value: float, row: Row) -> str:
    interval = ratio_interval(float(row["ci_low"]), float(row["ci_high"]))
    return f"{ratio(value)} ({interval})" if interval else ratio(value)


def comparison_phrase(row: Row, other: str, this: str) -> str:
    """`this step is 3.91× (3.87× to 3.95×) faster than ...`, as the row's verdict has it."""
    value, low, high = (float(row[name]) for name in ("ratio", "ci_low", "ci_high"))
    interval = ratio_interval(low, high)
    match row["verdict"]:
        case "faster":
            return f"{this} is {ratio(value)} ({interval}) faster than `{other}`"
        case "slower":
            inverse = ratio_interval(1 / high, 1 / low)
            return (
                f"{this} is slower than `{other}`: it takes {ratio(1 / value)} ({inverse}) as long"
            )
        case "same":
            return (
                f"{this} is the same as `{other}` within {WITHIN}:"
                f" {ratio(value)} its speed ({interval})"
            )
    if math.isnan(low):
        return (
            f"{this} cannot be told from `{other}`: {ratio(value)} its speed, from a single"
            " round and so without an interval"
        )
    return (
        f"it is unclear how {this} compares with `{other}`: {ratio(value)} its speed ({interval})"
    )


def _missing(context: Context, machine: str, variant: Variant) -> str:
    """Why there is no fresh figure of the shown case; empty where there is one."""
    row = context.figure(machine, variant)
    name = f"`{variant.name}`"
    if row is None:
        state, reason = context.absence(machine, variant, context.shown_case(variant))
        return f"{name} was {state}: {reason}." if reason else f"{name} has not been measured."
    if row["stale"]:
        return f"the result of {name} is stale: its code has changed since it was measured."
    return ""


def order_sentences(context: Context) -> list[str]:
    """A sentence for each machine whose steps come out in another order than they are told in.

    What is beyond the journey has no place in its order. Two steps count as out of order where the
    later one is surely slower: by their ratio where they are compared directly, else where their
    intervals are apart.
    """
    sentences = []
    for machine in context.machines:
        steps = [
            (step, row)
            for step in context.study.with_role("step")
            if (row := context.figure(machine, step)) is not None and not row["stale"]
        ]
        turned = [
            f"`{later.name}` is slower than `{earlier.name}`"
            for index, (later, _) in enumerate(steps)
            for earlier, _ in steps[:index]
            if context.is_surely_faster(machine, earlier, later)
        ]
        if turned:
            by_time = sorted(steps, key=lambda pair: float(pair[1]["median"]), reverse=True)
            names = listing([f"`{step.name}`" for step, _ in by_time])
            sentences.append(
                f"On {machine} the steps of the journey do not get faster in the order in which"
                f" they are told: {listing(turned)}. From slowest to fastest they are {names}."
            )
    return sentences
