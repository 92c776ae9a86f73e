"""Faults of tables: gaps where samples are fresh, and rates that no link carries."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from analysis.site.check import fatal
from analysis.site.check.faults import Fault
from analysis.site.check.tables import table_faults
from analysis.site.facts.inputs import Inputs
from analysis.study.claims.verdicts import MISSING, NOT_TESTED


def faults(inputs: Inputs, **tables: pd.DataFrame) -> list[str]:
    """Faults with these tables that the inputs do not have."""
    known = {*table_faults(inputs)}
    return [str(one) for one in table_faults(inputs.with_tables(**tables)) if one not in known]


def test_a_machine_lacks_only_what_it_was_not_given(calibrated: Inputs) -> None:
    """Published figures, most counters, and the number of SMs used, all for claims."""
    found = list(table_faults(calibrated))
    lacks = re.compile("no published|no fresh profile|no sms_used")
    assert all(one.where.startswith("h2d_gather: claim") for one in found)
    assert all(lacks.search(one.what) for one in found)


def test_a_case_without_a_result_or_a_reason_is_named(calibrated: Inputs) -> None:
    summary = calibrated.tables["summary"]
    gone = (summary["variant"] == "v1_vectorized") & summary["case"].str.startswith(
        "bs=128,topk=2048"
    )
    assert faults(calibrated, summary=summary[~gone]) == [
        "box: h2d_gather/v1_vectorized: expected a result or a reason in"
        f" {min(summary.loc[gone, 'case'])} and 1 more, got none"
    ]
    (fault,) = faults(calibrated, summary=summary[summary["study"] != "h2d_gather"])[:1]
    assert fault == "box: h2d_gather: expected results, got none"


def test_a_parameter_without_a_value_is_named(calibrated: Inputs) -> None:
    parameters = calibrated.tables["model_parameters"]
    unknown = parameters.assign(
        value=parameters["value"].mask(parameters["parameter"] == "copy_engine_start_up")
    )
    assert faults(calibrated, model_parameters=unknown) == [
        "box: link_calibration: expected parameters of the model, got none for copy_engine_start_up"
    ]


def test_a_prediction_that_is_absent_though_its_samples_are_fresh_is_named(
    calibrated: Inputs,
) -> None:
    model = calibrated.tables["model"]
    kept = model[model["variant"] != "v3_loads_first"]
    (fault,) = faults(calibrated, model=kept)
    assert fault.startswith("box: h2d_gather/v3_loads_first: expected a prediction in bs=")


def test_a_claim_that_lacks_evidence_is_named(calibrated: Inputs) -> None:
    claims = calibrated.tables["claims"].copy()
    first = claims[~claims["reason"].str.contains(MISSING)].index[0]
    claims.loc[first, ["verdict", "reason"]] = [NOT_TESTED, f"{MISSING}no prediction"]
    name, machine = claims.loc[first, ["claim", "machine"]]
    assert faults(calibrated, claims=claims) == [
        f"{machine}: h2d_gather: claim {name}: missing: no prediction"
    ]
    claims.loc[first, "reason"] = "the result of v3 is stale"
    assert faults(calibrated, claims=claims) == []
    without = claims[claims["claim"] != name]
    assert faults(calibrated, claims=without) == [
        f"h2d_gather: claim {name}: expected a verdict, got none"
    ]


def test_a_rate_beyond_that_of_the_link_is_named(calibrated: Inputs) -> None:
    """Only where every byte crosses the link once: repeated rows may be in the L2 cache."""
    summary = calibrated.tables["summary"]
    is_step = (summary["variant"] == "v4_grid_stride") & (summary["metric"] == "gpu_time")
    too_fast = summary.assign(median=summary["median"].mask(is_step, summary["median"] / 2))
    found = faults(calibrated, summary=too_fast)
    assert found and all("draw=permutation" in one for one in found)
    assert all("GB/s, the rate of the link, in bs=" in one for one in found)


@pytest.mark.parametrize(
    ("machine", "published", "stops"),
    [("box", ["box"], True), ("box", [], False), ("", ["box"], True), ("", [], False)],
)
def test_faults_of_published_machines_stop_a_build(
    calibrated: Inputs, machine: str, published: list[str], stops: bool
) -> None:
    fault = Fault("page home", "expected content, got 'nothing'", machine)
    assert fatal([fault], published, calibrated) == [fault] * stops
