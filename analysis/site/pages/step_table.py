"""The table above the sections of variants: what each changes, its figure, and what it gains."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from analysis.base.quantities import ratio, speed
from analysis.site.charts.columns import delivered_bytes
from analysis.site.facts.basis import basis_phrase, is_headline
from analysis.site.facts.journeys import machines_by_evidence
from analysis.site.facts.rows import MeasuredRow
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.html import figure
from analysis.study import Case, Variant, parse_case

MACHINES: Final = 2
"""Number of machines in the table, those with most evidence; the sections have all."""
NOTE: Final = (
    "*Gain*: speed relative to the row above, or to the variant that is named; *in all*: relative"
    " to the first row. Both are medians over paired rounds of the same run, so they differ from"
    " ratios of the figures shown. A figure of another case than the page's names what differs.\n"
    "{: .hp-quiet }"
)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\[])")


def step_table(facts: StudyFacts, variants: Sequence[Variant]) -> str:
    """A row for each of `variants`, in Markdown; empty without variants.

    After the figure is the speed relative to the variant's `after`, and to the first variant. A
    note below the table says so. If the figures of a machine are by several clocks, each names its
    own; a speed names the clock if that is not the figure's.
    """
    if not variants:
        return ""
    machines = machines_by_evidence(facts)[:MACHINES]
    previous = dict(zip([one.name for one in variants[1:]], variants, strict=False))
    columns = ["variant", "what changes"]
    rows = [[_title(variant), _reason(variant)] for variant in variants]
    for machine in machines:
        times = (facts.figures.time(machine, variant) for variant in variants)
        has_clocks = len({time.metric for time in times if time is not None}) > 1
        cells = [
            _cells(facts, machine, variant, variants[0], previous.get(variant.name), has_clocks)
            for variant in variants
        ]
        titles = (facts.inputs.called(machine), "gain", "in all")
        for place, title in enumerate(titles):
            if any(cell[place] for cell in cells):
                columns.append(title)
                for row, cell in zip(rows, cells, strict=True):
                    row.append(cell[place])
    ruler = ["---", "---", *["--:"] * (len(columns) - 2)]
    lines = [_line(cells) for cells in (columns, ruler, *rows)]
    return "\n".join([*lines, *(["", NOTE] if "gain" in columns else [])])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _title(variant: Variant) -> str:
    return f"[{_in_cell(variant.title)}](#{variant.name})"


def _reason(variant: Variant) -> str:
    """The first sentence of the variant's idea."""
    return _in_cell(_SENTENCE.split(" ".join(variant.idea.split()), maxsplit=1)[0])


def _in_cell(text: str) -> str:
    return text.replace("|", "\\|")


def _cells(
    facts: StudyFacts,
    machine: str,
    variant: Variant,
    first: Variant,
    previous: Variant | None,
    has_clocks: bool,
) -> tuple[str, str, str]:
    """Figure, with its clock if the column `has_clocks`; gain over the variant's `after`, which is
    named unless it is the `previous` row; and gain over the first row."""
    time = facts.figures.time(machine, variant)
    if time is None:
        return "", "", ""
    case = facts.study.shown_case(variant)
    shown = figure(speed(delivered_bytes(case, time.metric), time.median), time)
    notes = [basis_phrase(time)] * (not is_headline(time)) + ["stale"] * time.stale
    clock = facts.study.metrics[time.metric].clock if has_clocks else ""
    lines = [shown, clock, ", ".join(notes), *_other_case(facts.study.headline, case)]
    after = facts.study.variant(variant.after) if variant.after else None
    in_all = _gain(facts, time, variant, first) if first not in (variant, after) else ""
    gain = _gain(facts, time, variant, after) if after else ""
    if gain and after is not None and after != previous:
        gain += f"<br>over [`{after.name}`](#{after.name})"
    return "<br>".join(filter(None, lines)), gain, in_all


def _other_case(headline: str, case: Case) -> list[str]:
    """What differs from the headline case; empty if the figure is of that case."""
    usual = parse_case(headline)
    return [f"{key}={value}" for key, value in case.values.items() if usual.get(key) != value]


def _gain(facts: StudyFacts, time: MeasuredRow, variant: Variant, other: Variant) -> str:
    """Speed relative to `other`, from pairs of one run and round, with its clock if that is not the
    one of `time`; empty if no run measured both."""
    row = facts.figures.comparison(time.machine, variant, other)
    if row is None:
        return ""
    return "<br>".join(
        filter(None, [figure(ratio(row.ratio), row), facts.figures.other_clock(row, time)])
    )
