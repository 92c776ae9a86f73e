"""Large copies over links that have not been measured here, by the model, beside public figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from analysis.compare.judge import EQUAL_WITHIN
from analysis.results.model.hardware import Link, PublishedRate, behind, predict, read_links
from analysis.results.model.terms import Parameters
from analysis.site.facts.predicting import chips
from analysis.site.facts.study_facts import StudyFacts
from analysis.study.access import Access

COPY_BYTES: Final = 2**30
IN_FLIGHT_BYTES: Final = 2048
"""Bytes that a warp of a copy by SMs has in flight: 64 a lane."""


@dataclass(frozen=True)
class Calibrated:
    """The calibrated machine and its link; predictions combine its chip with other links."""

    machine: str
    sms: int
    parameters: Parameters
    link: Link

    def measured_values(self) -> dict[str, float]:
        """The values of OF_THE_MACHINE on this machine."""
        efficiency = self.parameters.link_rate / self.link.packet_rate
        return {"efficiency": efficiency, "latency": self.parameters.latency}


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


def calibrated_machine(studies: Mapping[str, StudyFacts]) -> Calibrated | None:
    """The first machine with calibrated parameters and a known link; None without one."""
    by_pcie: dict[Any, Link] = {link.pcie: link for link in read_links() if link.pcie}
    for facts in [*studies.values()][:1]:
        for machine, chip in chips(facts.inputs).items():
            about = facts.inputs.machines[machine]
            if link := by_pcie.get((about.get("pcie_generation"), about.get("pcie_width"))):
                return Calibrated(machine, chip.sms, chip.parameters, link)
    return None


def held_against(studies: Mapping[str, StudyFacts]) -> list[HeldAgainst]:
    """Every published rate beside the predicted one; empty without a calibrated machine."""
    known = calibrated_machine(studies)
    if known is None:
        return []
    held = []
    for link in read_links():
        parameters = behind(link, known.parameters, known.link)
        for published in link.published:
            in_flight = IN_FLIGHT_BYTES if published.reads == "contiguous" else 0
            access = Access(published.reads, COPY_BYTES, in_flight_bytes=in_flight)
            seconds = predict(access, known.sms, link, parameters).seconds
            held.append(HeldAgainst(link, published, COPY_BYTES / seconds, link == known.link))
    return held
