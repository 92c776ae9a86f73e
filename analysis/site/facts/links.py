"""Times by the link model: of cases that need not have been measured, and over other links."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from analysis.results.model.terms import Parameters, predicted_seconds, work_of
from analysis.site.facts.inputs import Inputs
from analysis.study import Case, Variant
from analysis.study.access import access_of


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
