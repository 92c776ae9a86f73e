"""The clocks of all committed figures: what stands side by side is by one clock, or names it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from analysis.base.quantities import percent, ratio
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.journeys import journey_of
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages import variants as sections
from analysis.site.pages.home import cards
from analysis.site.pages.step_table import step_table
from analysis.study import ROLES, Study, Variant
from tests.repository import STUDIES
from tests.roots import without_data


@pytest.fixture(scope="module")
def facts(committed: Inputs) -> dict[str, StudyFacts]:
    """All committed results, by study."""
    return {name: StudyFacts(committed, study) for name, study in STUDIES.items()}


Cell = tuple[str, Variant, str, str]
"""The machine, the variant and the other one of a ratio, and its text."""


def step_cells(facts: StudyFacts, role: str) -> Iterator[Cell]:
    """The ratios in a table of steps."""
    shown = [one for one in facts.study.with_role(role) if one.name not in facts.unreached]
    machines = {facts.inputs.called(machine): machine for machine in facts.machines}
    lines = [line for line in step_table(facts, shown).splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    for variant, row in zip(shown, rows[2:], strict=True) if rows else ():
        machine = ""
        for title, cell in zip(rows[0], row, strict=True):
            machine = machines.get(title, machine)
            other = {"gain": variant.after, "in all": shown[0].name}.get(title)
            if other and cell:
                yield machine, variant, other, cell.partition("<br>over")[0]


def figure_cells(facts: StudyFacts, variant: Variant) -> Iterator[Cell]:
    """The ratios in the table of a variant's figures."""
    machines = {facts.inputs.called(machine): machine for machine in facts.machines}
    html = str(sections._figures(facts, variant, ""))
    rows = [
        [
            re.sub(r"<[^>]+>", "", cell).strip()
            for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.S)
        ]
        for row in re.findall(r"<tr.*?</tr>", html, re.S)
    ]
    for row in rows[1:]:
        for title, cell in zip(rows[0], row, strict=True):
            if (found := re.fullmatch(r"(?:against|of) (\w+)", title)) and cell:
                yield machines[row[0]], variant, found[1], cell


def stated_metrics(study: Study, text: str, usual: str) -> list[str]:
    """The metrics that a cell may be of: those of the clock that it names, or that of its row."""
    named = re.search(r"by (?!rate)([^|<]*[^ |<])", text)
    if named is None:
        return [usual]
    return [name for name, metric in study.metrics.items() if metric.clock == named[1]]


@pytest.mark.parametrize("name", STUDIES)
def test_a_ratio_is_by_the_clock_of_its_row_or_names_its_own(
    facts: dict[str, StudyFacts], name: str
) -> None:
    one = facts[name]
    cells = [cell for role in ROLES for cell in step_cells(one, role)]
    cells += [cell for variant in one.study.variants for cell in figure_cells(one, variant)]
    for machine, variant, other, text in cells:
        time = one.figures.time(machine, variant)
        assert time is not None
        found = [
            row
            for metric in stated_metrics(one.study, text, time.metric)
            if (row := one.figures.ratio(machine, variant, one.study.variant(other), metric))
        ]
        shown = without_data(text).strip()
        assert any(shown.startswith((ratio(row.ratio), percent(row.ratio))) for row in found), (
            machine,
            variant.name,
            other,
            text,
        )


@pytest.mark.parametrize("name", STUDIES)
def test_a_card_is_by_one_clock_and_names_it(facts: dict[str, StudyFacts], name: str) -> None:
    one = facts[name]
    journey = journey_of(one)
    if journey is None:
        return
    html = without_data(str(cards([one], str)))
    clock = one.study.metrics[journey.metric].clock
    assert f"by {clock}" in html
    assert {time.metric for time in journey.measured} == {journey.metric}
    assert journey.metric in one.study.metrics_for(*(step.variant for step in journey.steps))
    assert all(f" {variant.name}" in html for variant in journey.left_out)
    (gain,) = re.findall(r'"Median over paired rounds">([^<]*)<', html)
    if gain:
        ends = journey.last.variant, journey.first.variant
        row = one.figures.ratio(journey.machine, *ends, journey.metric)
        assert row is not None and gain == ratio(row.ratio)
    limit = journey.limit
    if limit is None:
        return
    assert not limit.clock or f"({limit.clock})" in html
    if limit.kind in ("ceiling", "reference") and limit.variant is not None:
        for step in (step for step in journey.steps if step.share is not None):
            row = one.figures.ratio(journey.machine, step.variant, limit.variant, journey.metric)
            assert row is not None and row.ratio == step.share
