"""Predictions for other links, from the calibration of a machine."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from analysis.compare.judge import EQUAL_WITHIN
from analysis.results.model.hardware import (
    Link,
    Prediction,
    PublishedRate,
    behind,
    predict,
    read_links,
)
from analysis.results.model.terms import Parameters
from analysis.site.facts.predicting import chips
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Variant
from analysis.study.access import access_of

ROLES = ("step", "ceiling")
"""Roles of the predicted variants."""


@dataclass(frozen=True)
class LinkRate:
    """Rates in B/s of a variant in its shown case: predicted, by the link alone, and measured on
    the calibrated machine, NaN except for its link."""

    link: Link
    study: str
    variant: Variant
    case: str
    rate: float
    binding: str
    link_rate: float
    measured: float

    @property
    def is_measured(self) -> bool:
        return not math.isnan(self.measured)


@dataclass(frozen=True)
class Calibrated:
    """The calibrated machine and its link; predictions combine its chip with other links."""

    machine: str
    sms: int
    parameters: Parameters
    link: Link

    def known_parameters(self) -> int:
        return sum(map(math.isfinite, self.parameters.values()))

    def measured_values(self) -> dict[str, float]:
        """The values of OF_THE_MACHINE on this machine."""
        efficiency = self.parameters.link_rate / self.link.packet_rate
        return {"efficiency": efficiency, "latency": self.parameters.latency}


def calibrated_machine(studies: Mapping[str, StudyFacts]) -> Calibrated | None:
    """The machine with a known link and most calibrated parameters; None without one."""
    found: list[Calibrated] = []
    for facts in list(studies.values())[:1]:
        for machine, chip in chips(facts.inputs).items():
            described = facts.inputs.machines[machine]
            key = {name: described.get(f"pcie_{name}") for name in ("generation", "width")}
            link = next((link for link in read_links() if link.pcie == key), None)
            if link is not None:
                found.append(Calibrated(machine, chip.sms, chip.parameters, link))
    return max(found, key=Calibrated.known_parameters, default=None)


@dataclass(frozen=True)
class HeldAgainst:
    """A published rate of a large copy over a link, and the predicted one, both in B/s."""

    link: Link
    published: PublishedRate
    predicted: float
    is_calibrated: bool
    """Whether this is the link of the calibrated machine, whose figures then count."""

    @property
    def difference(self) -> float:
        """Published over predicted rate, minus 1."""
        return self.published.rate / self.predicted - 1

    @property
    def is_refuted(self) -> bool:
        return not self.is_calibrated and abs(self.difference) > EQUAL_WITHIN


def held_against(studies: Mapping[str, StudyFacts]) -> list[HeldAgainst]:
    """Every published rate beside the fastest predicted copy of its kind."""
    known, rates = calibrated_machine(studies), _all_rates(studies)
    found = []
    for link in read_links():
        for published in link.published:
            copies = [
                one.rate
                for one in rates
                if one.link == link and (one.variant.link or {}).get("reads") == published.reads
            ]
            if known is not None and copies:
                is_calibrated = link == known.link
                found.append(HeldAgainst(link, published, max(copies), is_calibrated))
    return found


def link_rates(studies: Mapping[str, StudyFacts], *, refuted: bool = False) -> list[LinkRate]:
    """Predicted rates of steps and ceilings over every link; empty without a calibrated machine.
    Predictions by SMs or by the copy engine that a published rate has `refuted` are given alone.

    Left out are variants whose reads the model does not know, and the calibrating studies.
    """
    gone = {(one.link.name, one.published.reads) for one in held_against(studies) if one.is_refuted}
    return [one for one in _all_rates(studies) if ((one.link.name, _copy(one)) in gone) == refuted]


def _copy(one: LinkRate) -> str:
    """The kind of large copy, one of COPIES, that reads as this variant does."""
    reads = (one.variant.link or {}).get("reads")
    return "copy_engine" if reads == "copy_engine" else "contiguous"


def _all_rates(studies: Mapping[str, StudyFacts]) -> list[LinkRate]:
    known = calibrated_machine(studies)
    if known is None:
        return []
    found = []
    for link in read_links():
        parameters = behind(link, known.parameters, known.link)
        for facts in studies.values():
            chosen = () if facts.study.calibrates else facts.study.with_role(*ROLES)
            for variant in chosen:
                access = access_of(variant, facts.study.shown_case(variant))
                if access is None:
                    continue
                prediction = predict(access, known.sms, link, parameters)
                if not math.isnan(prediction.seconds):
                    found.append(_rate(facts, known, link, variant, prediction))
    return found


def _rate(
    facts: StudyFacts, known: Calibrated, link: Link, variant: Variant, prediction: Prediction
) -> LinkRate:
    case = facts.study.shown_case(variant)
    row = facts.figures.find(known.machine, variant.name, case.id, "gpu_time")
    is_own = link == known.link and row is not None and not row.stale
    return LinkRate(
        link,
        facts.study.name,
        variant,
        case.id,
        case.payload_bytes / prediction.seconds,
        prediction.binding,
        case.payload_bytes / prediction.link_seconds,
        case.payload_bytes / row.median if is_own and row is not None else math.nan,
    )
