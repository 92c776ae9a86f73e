"""Times by the link model of cases that need not have been measured."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from analysis.results.model.terms import Parameters, predicted_seconds, work_of
from analysis.site.facts.inputs import Inputs
from analysis.study import Case, Variant
from analysis.study.access import access_of

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
    table = inputs.tables["model_parameters"]
    values = {
        name: dict(zip(rows["parameter"], rows["value"], strict=True))
        for name, rows in table.groupby("machine")
    }
    found = {}
    for machine, described in inputs.machines.items():
        known, sms = values.get(machine, {}), described.get("sms")
        if isinstance(sms, int) and math.isfinite(known.get("link_rate", math.nan)):
            parameters = (known.get(one.name, math.nan) for one in fields(Parameters))
            found[machine] = Chip(sms, Parameters(*parameters))
    return found
