"""The link model on pages: its parameters, its errors, and links that were not measured."""

from __future__ import annotations

import math
from typing import Final

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
from analysis.results.model.hardware import MEANING, OF_THE_MACHINE, Parameter, read_links
from analysis.results.model.judge import JUDGED_WITHIN, USES
from analysis.results.model.terms import ABOUT
from analysis.results.tables.rows import ModelRow, rows_of
from analysis.site.facts.links import calibrated_link, held_against
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.html import code, figure, folded_tables, link, table, wide
from analysis.site.pages.page import Page, macro

WITHIN: Final = "within " + " or ".join(f"{share * 100:g} %" for share in JUDGED_WITHIN.values())
COPIED: Final = {"contiguous": "SMs", "copy_engine": "the copy engine"}
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
    for machine, use in sorted(groups.groups, key=lambda key: (key[0], USES.index(key[1]))):
        points = groups.get_group((machine, use))
        chosen = _judged(facts, machine, use)
        near = sum(abs(point.residual) <= JUDGED_WITHIN[point.binding] for point in chosen)
        worst = next(iter(chosen), None)
        rows.append(
            {
                "machine": facts.inputs.called(machine),
                "use": use,
                "points": str(len(points)),
                "judged": str(len(chosen)),
                WITHIN: f"{near} ({percent(near / len(chosen))})" if chosen else "",
                "worst judged": signed_percent(worst.residual) if worst else "",
                "case": f"{worst.variant} {worst.case}" if worst else "",
            }
        )
    return table(rows)


def _judged(facts: StudyFacts, machine: str = "", use: str = "") -> list[ModelRow]:
    """The judged points of a machine and a use, or of all, the worst first."""
    points = facts.predictions[facts.predictions["judged"]]
    if machine:
        points = points[(points["machine"] == machine) & (points["use"] == use)]
    return sorted(rows_of(points, ModelRow), key=lambda point: -abs(point.residual))


@macro(may_be_empty=True)
def misses(page: Page) -> Markup:
    """The judged points outside the accepted range of the link model, the worst first."""
    rows = []
    for point in _judged(page.facts):
        if abs(point.residual) <= JUDGED_WITHIN[point.binding]:
            continue
        row = page.facts.find(point.machine, point.variant, point.case, point.metric)
        measured = quantity(point.measured, "s")
        rows.append(
            {
                "machine": page.inputs.called(point.machine),
                "variant": code(point.variant),
                "case": point.case,
                "bound by": point.binding,
                "ratio to the next term": digits(point.margin),
                "predicted": quantity(point.predicted, "s"),
                "measured": figure(measured, row) if row else measured,
                "measured vs. predicted": signed_percent(point.residual),
            }
        )
    return table(rows)


@macro()
def predicted_links(page: Page) -> Markup:
    """Rates of large copies that the model allows over links, beside published ones. The chip is
    that of the calibrated machine: only the link differs."""
    return table(
        {
            "link": one.link.title,
            "copy by": COPIED[one.published.reads],
            "predicted": gigabytes_per_second(one.predicted / 1e9),
            "published": gigabytes_per_second(one.published.rate / 1e9),
            "published vs. predicted": signed_percent(one.difference),
            "verdict": one.verdict,
            "source": link(one.published.address, one.published.what),
        }
        for one in held_against(page.inputs)
    )


@macro()
def stated_links(page: Page) -> Markup:
    """The parameters of those links, each with its source."""
    calibrated: dict[str, float] = {}
    if known := calibrated_link(page.inputs):
        chip, measured = known[0].parameters, known[1]
        values = (chip.link_rate / measured.packet_rate, chip.latency)
        calibrated = dict(zip(OF_THE_MACHINE, values, strict=True))
    groups = {
        one.title: [
            {
                "parameter": MEANING[name],
                "value": _value(parameter, calibrated.get(name, math.nan)),
                "from": parameter.source or f"assumption: {parameter.assumption}",
            }
            for name, parameter in one.parameters.items()
        ]
        for one in read_links()
    }
    return wide(folded_tables(groups))


def _value(parameter: Parameter, calibrated: float) -> str:
    """The value of a parameter of a link, or else the calibrated machine's."""
    value, unit = parameter.value, parameter.unit
    value = calibrated if math.isnan(value) else value
    if math.isnan(value):
        return "as calibrated"
    if unit == "B":
        return f"{value:g} B"
    return digits(value, 4) if unit == "1" else quantity(value, unit)
