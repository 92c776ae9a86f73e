"""Tables of links that were not measured: the rates of large copies that the model allows over
them, beside published ones, and the parameters behind that."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from markupsafe import Markup

from analysis.api.charts import PageTable, StudyFacts, chips
from analysis.api.model import (
    EQUAL_WITHIN,
    MEANING,
    OF_THE_MACHINE,
    Link,
    Parameter,
    Parameters,
    PublishedRate,
    behind,
    predict,
    read_links,
)
from analysis.api.quantities import digits, quantity, signed_percent
from analysis.api.study import Access

COPY_BYTES: Final = 2**30
IN_FLIGHT_BYTES: Final = 2048
"""Bytes that a warp of a copy by SMs has in flight: 64 a lane."""
COPIED: Final = {"contiguous": "SMs", "copy_engine": "the copy engine"}
"""Kinds of large copies in words."""
NOT_CALIBRATED: Final = "No machine with a known link has been calibrated yet."


class Calibrated(NamedTuple):
    """A calibrated machine: its number of SMs, parameters and link."""

    sms: int
    parameters: Parameters
    link: Link

    @property
    def values(self) -> dict[str, float]:
        """The parameters of OF_THE_MACHINE."""
        efficiency = self.parameters.link_rate / self.link.packet_rate
        return dict(zip(OF_THE_MACHINE, (efficiency, self.parameters.latency), strict=True))


class HeldAgainst(NamedTuple):
    """A published rate of a large copy over a link, and the predicted one, both in B/s.
    `is_calibrated` is the link of the calibrated machine, whose figures then count."""

    link: Link
    published: PublishedRate
    predicted: float
    is_calibrated: bool

    @property
    def difference(self) -> float:
        """Published over predicted rate, minus 1."""
        return self.published.rate / self.predicted - 1

    @property
    def verdict(self) -> str:
        if self.is_calibrated:
            return "measured here"
        return "refuted" if abs(self.difference) > EQUAL_WITHIN else "not refuted"


def calibrated_machine(facts: StudyFacts) -> Calibrated | None:
    """The first machine with calibrated parameters and a known link; None without one."""
    for machine, chip in chips(facts.inputs).items():
        about = facts.inputs.machines[machine]
        pcie = {name: about.get(f"pcie_{name}") for name in ("generation", "width")}
        if link := next((link for link in read_links() if link.pcie == pcie), None):
            return Calibrated(chip.sms, chip.parameters, link)
    return None


def held_against(facts: StudyFacts) -> list[HeldAgainst]:
    """Every published rate beside the predicted one, by the calibrated chip behind that link."""
    known, held = calibrated_machine(facts), []
    if known is None:
        return []
    for link in read_links():
        parameters = behind(link, known.parameters, known.link)
        for published in link.published:
            in_flight = IN_FLIGHT_BYTES if published.reads == "contiguous" else 0
            access = Access(published.reads, COPY_BYTES, in_flight_bytes=in_flight)
            seconds = predict(access, known.sms, link, parameters)
            held.append(HeldAgainst(link, published, COPY_BYTES / seconds, link == known.link))
    return held


def predicted_links(facts: StudyFacts) -> PageTable:
    """Rates of large copies that the model allows over links, beside published ones."""
    columns = ["link", "copy by", "predicted", "published", "published vs. predicted", "verdict"]
    source = Markup('<a href="{}">{}</a>')
    rows = [
        [
            one.link.title,
            COPIED[one.published.reads],
            *(quantity(rate, "B/s") for rate in (one.predicted, one.published.rate)),
            signed_percent(one.difference),
            one.verdict,
            source.format(one.published.address, one.published.what),
        ]
        for one in held_against(facts)
    ]
    return PageTable([*columns, "source"], rows, NOT_CALIBRATED, columns[2:5])


def stated_links(facts: StudyFacts) -> PageTable:
    """The parameters of those links, each with its source."""
    known = calibrated_machine(facts)
    values = known.values if known else {}
    rows = [
        [
            link.title,
            MEANING[name],
            _value(parameter, values.get(name, math.nan)),
            parameter.source or f"assumption: {parameter.assumption}",
        ]
        for link in read_links()
        for name, parameter in link.parameters.items()
    ]
    return PageTable(["link", "parameter", "value", "from"], rows, NOT_CALIBRATED, ["value"])


def _value(parameter: Parameter, of_machine: float) -> str:
    """The value of a parameter of a link, or else the calibrated machine's."""
    value = of_machine if math.isnan(parameter.value) else parameter.value
    if math.isnan(value):
        return "as calibrated"
    if parameter.unit == "B":
        return f"{value:g} B"
    return digits(value, 4) if parameter.unit == "1" else quantity(value, parameter.unit)
