"""Times by the link model: of cases that need not have been measured, and over other links."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from analysis.compare.judge import EQUAL_WITHIN
from analysis.results.model.hardware import Link, PublishedRate, behind, predict, read_links
from analysis.results.model.terms import Parameters, predicted_seconds, work_of
from analysis.site.facts.inputs import Inputs
from analysis.study import Case, Variant
from analysis.study.access import Access, access_of

COPY_BYTES: Final = 2**30
IN_FLIGHT_BYTES: Final = 2048
"""Bytes that a warp of a copy by SMs has in flight: 64 a lane."""
OF_EACH_FIT: Final = ("link_rate", "walk")
"""A parameter of the fit to the link, and one of that to translation."""


@dataclass(frozen=True)
class Chip:
    """Number of SMs of a calibrated machine, and its parameters of the model."""

    sms: int
    parameters: Parameters

    def seconds(self, variant: Variant, case: Case) -> float:
        """Predicted seconds of `variant` in any case; NaN without a description of its reads, or
        without a parameter."""
        access = access_of(variant, case)
        if access is None:
            return math.nan
        work = np.array([work_of(access, self.sms)])
        return float(predicted_seconds(work, self.parameters.values())[0])


@dataclass(frozen=True)
class Calibrated:
    """The calibrated machine and its link; predictions combine its chip with other links."""

    machine: str
    chip: Chip
    link: Link

    def measured_values(self) -> dict[str, float]:
        """The values of OF_THE_MACHINE on this machine."""
        parameters = self.chip.parameters
        efficiency = parameters.link_rate / self.link.packet_rate
        return {"efficiency": efficiency, "latency": parameters.latency}


@dataclass(frozen=True)
class HeldAgainst:
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
    def is_refuted(self) -> bool:
        return not self.is_calibrated and abs(self.difference) > EQUAL_WITHIN


def fit_bases(inputs: Inputs) -> dict[str, str]:
    """The calibration cases and runs behind the parameters of each calibrated machine."""
    table = inputs.tables["model_parameters"]
    fits = table[table["parameter"].isin(OF_EACH_FIT) & table["value"].notna()]
    of_machines = fits.groupby("machine").agg({"cases": "sum", "runs": "max"})
    return {
        str(machine): f"{cases} cases of {runs} run{'s' * (runs > 1)}"
        for machine, cases, runs in of_machines.itertuples()
    }


def chips(inputs: Inputs) -> dict[str, Chip]:
    """The calibrated machines, by name."""
    found = {}
    table = inputs.tables["model_parameters"].set_index("machine")
    for machine, described in inputs.machines.items():
        rows = table.loc[table.index == machine]
        known = dict(zip(rows["parameter"], rows["value"], strict=True))
        sms = described.get("sms")
        if isinstance(sms, int) and math.isfinite(known.get("link_rate", math.nan)):
            values = (known.get(one.name, math.nan) for one in fields(Parameters))
            found[machine] = Chip(sms, Parameters(*values))
    return found


def calibrated_machine(inputs: Inputs) -> Calibrated | None:
    """The first machine with calibrated parameters and a known link; None without one."""
    for machine, chip in chips(inputs).items():
        about = inputs.machines[machine]
        pcie = {name: about.get(f"pcie_{name}") for name in ("generation", "width")}
        if link := next((link for link in read_links() if link.pcie == pcie), None):
            return Calibrated(machine, chip, link)
    return None


def held_against(inputs: Inputs) -> list[HeldAgainst]:
    """Every published rate beside the predicted one; empty without a calibrated machine."""
    known = calibrated_machine(inputs)
    if known is None:
        return []
    held = []
    for link in read_links():
        parameters = behind(link, known.chip.parameters, known.link)
        for published in link.published:
            in_flight = IN_FLIGHT_BYTES if published.reads == "contiguous" else 0
            access = Access(published.reads, COPY_BYTES, in_flight_bytes=in_flight)
            seconds = predict(access, known.chip.sms, link, parameters)
            held.append(HeldAgainst(link, published, COPY_BYTES / seconds, link == known.link))
    return held
