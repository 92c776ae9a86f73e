"""The link model on pages: its parameters, its errors, and links that were not measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from markupsafe import Markup

from analysis.base.quantities import (
    INTERVAL,
    digits,
    gigabytes_per_second,
    percent,
    quantity,
    quantity_interval,
    signed_percent,
)
from analysis.results.model.hardware import MEANING, Parameter, read_links
from analysis.results.model.judge import JUDGED_WITHIN, USES
from analysis.results.model.terms import ABOUT
from analysis.site.facts.links import calibrated_machine, held_against
from analysis.site.facts.rows import ModelRow, rows_of
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.html import code, figure, folded_tables, link, table, wide
from analysis.site.pages.page import Page, macro

WITHIN = "within " + " or ".join(f"{share * 100:g} %" for share in JUDGED_WITHIN.values())
COPIED = {"contiguous": "SMs", "copy_engine": "the copy engine"}
"""Kinds of large copies in words."""


@macro()
def link_parameters(page: Page) -> Markup:
    """The parameters of the link model on every machine."""
    return table(
        {
            "machine": page.inputs.called(row.machine),
            "parameter": code(row.parameter),
            "meaning": ABOUT[row.parameter].meaning,
            "value": quantity(row.value, unit) or "not measured",
            INTERVAL: quantity_interval(row.value, row.ci_low, row.ci_high, unit),
            "from": f"{row.cases} cases, {row.runs} run{'s' * (row.runs > 1)}",
        }
        for row in page.inputs.parameters
        for unit in [row.unit if row.unit == "1" else row.unit.removeprefix("1")]
    )


@macro()
def judgement(page: Page) -> Markup:
    """The errors of the link model where the link clearly binds, by machine and use."""
    facts, rows = page.facts, []
    groups = facts.predictions.groupby(["machine", "use"])
    for (machine, use), points in sorted(
        groups, key=lambda one: (one[0][0], USES.index(one[0][1]))
    ):
        chosen = rows_of(points[points["judged"]], ModelRow)
        near = sum(abs(point.residual) <= JUDGED_WITHIN[point.binding] for point in chosen)
        worst = max(chosen, key=lambda point: abs(point.residual), default=None)
        rows.append(
            {
                "machine": facts.inputs.called(str(machine)),
                "use": use,
                "points": str(len(points)),
                "judged": str(len(chosen)),
                WITHIN: f"{near} ({percent(near / len(chosen))})" if chosen else "",
                "worst judged": signed_percent(worst.residual) if worst else "",
                "case": f"{worst.variant} {worst.case}" if worst else "",
            }
        )
    return table(rows)


@macro(may_be_empty=True)
def misses(page: Page) -> Markup:
    """The judged points outside the accepted range of the link model, the worst first."""
    facts = page.facts
    chosen = rows_of(facts.predictions[facts.predictions["judged"]], ModelRow)
    return table(
        _point(facts, point)
        for point in sorted(chosen, key=lambda point: -abs(point.residual))
        if abs(point.residual) > JUDGED_WITHIN[point.binding]
    )


def _point(facts: StudyFacts, point: ModelRow) -> dict[str, object]:
    row = facts.figures.find(point.machine, point.variant, point.case, point.metric)
    measured = quantity(point.measured, "s")
    return {
        "machine": facts.inputs.called(point.machine),
        "variant": code(point.variant),
        "case": point.case,
        "bound by": point.binding,
        "ratio to the next term": digits(point.margin),
        "predicted": quantity(point.predicted, "s"),
        "measured": figure(measured, row) if row else measured,
        "measured vs. predicted": signed_percent(point.residual),
    }


@macro()
def predicted_links(page: Page) -> Markup:
    """Rates of large copies that the model allows over links, beside published ones. The chip is
    that of the calibrated machine: only the link differs."""
    rows = [
        {
            "link": one.link.title,
            "copy by": COPIED[one.published.reads],
            "predicted": gigabytes_per_second(one.predicted / 1e9),
            "published": gigabytes_per_second(one.published.rate / 1e9),
            "published vs. predicted": signed_percent(one.difference),
            "verdict": "measured here"
            if one.is_calibrated
            else "refuted"
            if one.is_refuted
            else "not refuted",
            "source": link(one.published.address, one.published.what),
        }
        for one in held_against(page.inputs)
    ]
    return table(rows)


@macro()
def stated_links(page: Page) -> Markup:
    """The parameters of those links, each with its source."""
    known = calibrated_machine(page.inputs)
    measured = known.measured_values() if known else {}
    groups = {one.title: list(_stated(one.parameters, measured)) for one in read_links()}
    return wide(folded_tables(groups))


def _stated(
    parameters: Mapping[str, Parameter], calibrated: Mapping[str, float]
) -> Iterator[dict[str, object]]:
    """A row for each parameter of a link: its value, or else the `calibrated` one."""
    for name, parameter in parameters.items():
        value = parameter.value
        value = calibrated.get(name, math.nan) if math.isnan(value) else value
        yield {
            "parameter": MEANING[name],
            "value": "as calibrated" if math.isnan(value) else _written(value, parameter.unit),
            "from": parameter.source or f"assumption: {parameter.assumption}",
        }


def _written(value: float, unit: str) -> str:
    if unit == "B":
        return f"{value:g} B"
    return digits(value, 4) if unit == "1" else quantity(value, unit)
