"""Links that have not been measured here, for the page about hardware."""

from __future__ import annotations

import math
from collections.abc import Mapping

from markupsafe import Markup

from analysis.base.quantities import digits, gigabytes_per_second, quantity, signed_percent
from analysis.results.model.hardware import MEANING, Parameter, read_links
from analysis.site.facts.links import LinkRate, calibrated_machine, link_rates
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.html import code, folded_tables, wide
from analysis.site.pages.model import UNCALIBRATED
from analysis.site.pages.page import macro


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
    return "\n\n".join([sentence, *_refutations(studies), found])


def _refutations(studies: Mapping[str, StudyFacts]) -> list[str]:
    """A paragraph for each link whose printed rate refutes the predictions of reads by SMs."""
    contiguous = {
        one.link.name: one
        for one in reversed(link_rates(studies, refuted=True))
        if (one.variant.link or {}).get("reads") == "contiguous"
    }
    return [
        f"**Refuted: reads by SMs over {link.title}.** For {code(name)}"
        f" the model predicts {gigabytes_per_second(one.rate / 1e9)}. SMs have copied contiguous"
        f" bytes at {gigabytes_per_second(refuted.rate / 1e9)} ({refuted.source})."
        f" {refuted.lacks.strip()} The table and the chart leave out these reads."
        for one in contiguous.values()
        for name in [f"{one.study}/{one.variant.name}"]
        if (refuted := (link := one.link).refuted) is not None
    ]


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
        link.title: [
            [
                MEANING[name],
                _value(parameter, measured.get(name)),
                parameter.source or f"assumption: {parameter.assumption}",
            ]
            for name, parameter in link.parameters.items()
        ]
        for link in read_links()
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
