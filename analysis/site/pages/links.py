"""Links that have not been measured here, for the page about hardware."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from markupsafe import Markup

from analysis.base.quantities import (
    digits,
    gigabytes_per_second,
    listing,
    quantity,
    signed_percent,
)
from analysis.compare.judge import EQUAL_WITHIN
from analysis.results.model.hardware import MEANING, Parameter, read_links
from analysis.site.facts.links import (
    HeldAgainst,
    LinkRate,
    calibrated_machine,
    held_against,
    link_rates,
)
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.html import code, folded_tables, link, table, wide
from analysis.site.pages.model import UNCALIBRATED
from analysis.site.pages.page import macro

COPIED: Final = {"contiguous": "SMs", "copy_engine": "the copy engine"}
"""Kinds of large copies in words."""


@macro("predicted_links")
def predictions(studies: Mapping[str, StudyFacts]) -> str:
    """Predicted rates over other links, beside measured ones if there are any."""
    known = calibrated_machine(studies)
    if known is None:
        return UNCALIBRATED
    called = next(iter(studies.values())).inputs.called(known.machine)
    groups: dict[str, list[list[object]]] = {}
    for one in link_rates(studies):
        where = f"{one.link.title}: " + (
            f"measured here, on {called}" if one.is_measured else "not measured"
        )
        groups.setdefault(where, []).append(_row(one))
    columns = ["study", "variant", "predicted", "limited by", "if only the link limited"]
    columns += ["measured", "measured vs. predicted"]
    sentence = (
        f"The chip is that of {called}, calibrated behind {known.link.title}: outstanding reads"
        " and address translation stay the same. Only the link differs."
    )
    found = folded_tables(columns, groups, numeric=[columns[2], *columns[4:]])
    return "\n\n".join([sentence, *_public_figures(studies), found])


def _public_figures(studies: Mapping[str, StudyFacts]) -> list[str]:
    """The predictions of large copies beside published rates, and the links without any."""
    held = held_against(studies)
    rows = [
        [
            one.link.title,
            COPIED[one.published.reads],
            *(gigabytes_per_second(rate / 1e9) for rate in (one.predicted, one.published.rate)),
            signed_percent(one.difference),
            _verdict(one),
            link(one.published.address, one.published.what),
        ]
        for one in held
    ]
    columns = ["link", "copy by", "predicted", "published", "published vs. predicted", "verdict"]
    columns += ["source"]
    without = [one.title for one in read_links() if not one.published]
    sentence = (
        f"A public figure refutes a prediction if it differs by more than {EQUAL_WITHIN * 100:g} %."
        " That margin was chosen when the differences were known."
        " All predictions of such a kind are then left out of the table and of the chart."
        f" No public figure was found for {listing(without)}, so those predictions are untested."
        " Each public figure is of one host, and hosts differ."
    )
    return [sentence, table(columns, rows, numeric=columns[2:5])] if rows else []


def _verdict(one: HeldAgainst) -> str:
    if one.is_calibrated:
        return "measured here"
    return "refuted: left out" if one.is_refuted else "not refuted"


def _row(one: LinkRate) -> list[object]:
    rates = [gigabytes_per_second(rate / 1e9) for rate in (one.rate, one.link_rate, one.measured)]
    against = signed_percent(one.measured / one.rate - 1) if one.is_measured else ""
    variant = code(one.variant.name)
    return [one.study, variant, rates[0], one.binding, rates[1], rates[2], against]


@macro("stated_links")
def link_parameters(studies: Mapping[str, StudyFacts]) -> Markup:
    """The parameters of those links, each with its source."""
    known = calibrated_machine(studies)
    measured = known.measured_values() if known else {}
    groups = {
        one.title: [
            [
                MEANING[name],
                _value(parameter, measured.get(name)),
                parameter.source or f"assumption: {parameter.assumption}",
            ]
            for name, parameter in one.parameters.items()
        ]
        for one in read_links()
    }
    return wide(folded_tables(["parameter", "value", "from"], groups, numeric=["value"]))


def _value(parameter: Parameter, calibrated: float | None) -> str:
    """A stated value; else the `calibrated` one, if there is one."""
    value = parameter.value
    if math.isnan(value) and calibrated is None:
        return "as calibrated"
    if math.isnan(value) and calibrated is not None:
        value = calibrated
    if parameter.unit == "B":
        return f"{value:g} B"
    return digits(value, 4) if parameter.unit == "1" else quantity(value, parameter.unit)
