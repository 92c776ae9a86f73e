"""Times by the link model: of cases that need not have been measured, and over other links."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Final, NamedTuple

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


def calibrated_link(inputs: Inputs) -> tuple[Chip, Link] | None:
    """The first machine with calibrated parameters and a known link; None without one. Predictions
    combine its chip with other links."""
    for machine, chip in chips(inputs).items():
        about = inputs.machines[machine]
        pcie = {name: about.get(f"pcie_{name}") for name in ("generation", "width")}
        if link := next((link for link in read_links() if link.pcie == pcie), None):
            return chip, link
    return None


def held_against(inputs: Inputs) -> list[HeldAgainst]:
    """Every published rate beside the predicted one; empty without a calibrated machine."""
    known = calibrated_link(inputs)
    if known is None:
        return []
    (chip, calibrated), held = known, []
    for link in read_links():
        parameters = behind(link, chip.parameters, calibrated)
        for published in link.published:
            in_flight = IN_FLIGHT_BYTES if published.reads == "contiguous" else 0
            access = Access(published.reads, COPY_BYTES, in_flight_bytes=in_flight)
            seconds = predict(access, chip.sms, link, parameters).seconds
            held.append(HeldAgainst(link, published, COPY_BYTES / seconds, link == calibrated))
    return held
