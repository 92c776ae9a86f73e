"""What the home page embeds: every study with what came out of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from markupsafe import Markup

from analysis.facts.rows import MeasuredRow
from analysis.facts.study_facts import StudyFacts
from analysis.quantities import (
    INTERVAL,
    gigabytes_per_second,
    listing,
    percent,
    quantity,
    quantity_interval,
    ratio,
)
from analysis.report.agreement import agreement_sentence
from analysis.report.html import code, table
from analysis.report.sentences import NOTHING
from analysis.study import Variant

NO_STEP: Final = "no step measured"


def overview(studies: Mapping[str, StudyFacts], pages: Mapping[str, str]) -> str:
    """Every study with its question and what came out; `pages` are addresses by study. Markdown."""
    parts = []
    for name, facts in studies.items():
        title = facts.study.title
        parts.append(f"### [{title}]({pages[name]})" if name in pages else f"### {title}")
        parts += [facts.study.question.strip(), _outcome(facts)]
    return "\n\n".join(parts)


def _outcome(facts: StudyFacts) -> str:
    """The fastest step on every machine, against the first step and the ceilings."""
    if not facts.machines:
        return NOTHING
    if facts.is_about_repeats:
        return agreement_sentence(facts.inputs)
    ceilings = facts.study.with_role("ceiling")
    first = next(iter(facts.study.with_role("step", "beyond")), None)
    columns = ["machine", "fastest", "time", INTERVAL]
    columns += ["rate"] if facts.figures.are_rates else []
    columns += [f"against {first.name}"] if first else []
    columns += [f"of {ceiling.name}" for ceiling in ceilings]
    rows: list[list[object]] = []
    for machine in facts.machines:
        best = facts.ranking.fastest(machine)
        time = facts.figures.time(machine, best) if best else None
        if best is None or first is None or time is None:
            rows.append([machine, NO_STEP, *[""] * (len(columns) - 2)])
            continue
        of_ceilings = [facts.figures.comparison(machine, best, ceiling) for ceiling in ceilings]
        rows.append(
            [
                *(machine, _with_ties(best, facts.ranking.ties(machine))),
                *_time(facts, best, time),
                _against(facts, machine, best, first),
                *("" if row is None else percent(row.ratio) for row in of_ceilings),
            ]
        )
    return table(columns, rows, caption=f"Case {facts.study.headline}", numeric=columns[2:])


def _time(facts: StudyFacts, best: Variant, time: MeasuredRow) -> list[str]:
    """The time, its interval, and the rate where rates tell the story."""
    cells = [
        quantity(time.median, "s") + (" (stale)" if time.stale else ""),
        quantity_interval(time.ci_low, time.ci_high, "s"),
    ]
    if facts.figures.are_rates:
        payload = facts.figures.shown_case(best).payload_bytes
        cells.append(gigabytes_per_second(payload / time.median / 1e9))
    return cells


def _with_ties(best: Variant, ties: list[Variant]) -> Markup:
    """The fastest, and what it cannot be told apart from."""
    if not ties:
        return code(best.name)
    names = Markup(listing([code(other.name) for other in ties]))
    return Markup("{}, not told apart from {}").format(code(best.name), names)


def _against(facts: StudyFacts, machine: str, best: Variant, first: Variant) -> str:
    """How many times as fast `best` is, paired by rounds; empty where no run has both."""
    if best == first:
        return ratio(1.0)
    if (row := facts.figures.comparison(machine, best, first)) is not None:
        return ratio(row.ratio)
    if (row := facts.figures.comparison(machine, first, best)) is not None:
        return ratio(1 / row.ratio)
    return ""
