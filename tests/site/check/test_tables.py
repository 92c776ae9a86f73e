"""Faults of tables: gaps where samples are fresh, and rates that no link carries."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from analysis.site.check import fatal
from analysis.site.check.faults import Fault
from analysis.site.check.tables import table_faults
from analysis.site.facts.inputs import Inputs
from analysis.study.claims.verdicts import MISSING, NOT_TESTED

PLACE = "box: h2d_gather"
CASE = "bs=128,topk=2048,draw=permutation"


def faults(inputs: Inputs, **tables: pd.DataFrame) -> list[str]:
    """Faults with these tables that the inputs do not have."""
    known = {*table_faults(inputs)}
    return [str(one) for one in table_faults(inputs.with_tables(**tables)) if one not in known]


def test_a_machine_lacks_only_what_it_was_not_given(calibrated: Inputs) -> None:
    """Published figures, most counters, and the number of SMs used, all for claims."""
    found = list(table_faults(calibrated))
    lacks = re.compile("no published|no fresh profile|no sms_used")
    assert all(one.part.startswith("claim") and one.study == "h2d_gather" for one in found)
    assert all(lacks.search(one.what) for one in found)


def test_a_case_without_a_result_or_a_reason_is_named(calibrated: Inputs) -> None:
    summary = calibrated.tables["summary"]
    is_case = summary["case"].str.startswith("bs=128,topk=2048")
    gone = (summary["variant"] == "v1_vectorized") & is_case
    first = min(summary.loc[gone, "case"])
    expected = (
        f"{PLACE}/v1_vectorized: expected a result or a reason in {first} and 1 more, got none"
    )
    assert faults(calibrated, summary=summary[~gone]) == [expected]
    (fault,) = faults(calibrated, summary=summary[summary["study"] != "h2d_gather"])[:1]
    assert fault == f"{PLACE}: expected results, got none"


def test_a_parameter_without_a_value_is_named(calibrated: Inputs) -> None:
    parameters = calibrated.tables["model_parameters"]
    is_gone = parameters["parameter"] == "copy_engine_start_up"
    unknown = parameters.assign(value=parameters["value"].mask(is_gone))
    assert faults(calibrated, model_parameters=unknown) == [
        "box: link_calibration: expected parameters of the model, got none for copy_engine_start_up"
    ]


def test_a_prediction_that_is_absent_though_its_samples_are_fresh_is_named(
    calibrated: Inputs,
) -> None:
    model = calibrated.tables["model"]
    (fault,) = faults(calibrated, model=model[model["variant"] != "v3_loads_first"])
    assert fault.startswith(f"{PLACE}/v3_loads_first: expected a prediction in bs=")


def test_a_claim_that_lacks_evidence_is_named(calibrated: Inputs) -> None:
    claims = calibrated.tables["claims"].copy()
    first = claims[~claims["reason"].str.contains(MISSING)].index[0]
    claims.loc[first, ["verdict", "reason"]] = [NOT_TESTED, f"{MISSING}no prediction"]
    name = claims.loc[first, "claim"]
    expected = f"{PLACE}/claim {name}: missing: no prediction"
    assert faults(calibrated, claims=claims) == [expected]
    claims.loc[first, "reason"] = "the result of v3 is stale"
    assert faults(calibrated, claims=claims) == []
    expected = f"h2d_gather/claim {name}: expected a verdict, got none"
    assert faults(calibrated, claims=claims[claims["claim"] != name]) == [expected]


def test_a_rate_beyond_that_of_the_link_is_named(calibrated: Inputs) -> None:
    """Only where every byte crosses the link once: repeated rows may be in the L2 cache."""
    summary = calibrated.tables["summary"]
    is_step = (summary["variant"] == "v4_grid_stride") & (summary["metric"] == "gpu_time")
    too_fast = summary.assign(median=summary["median"].mask(is_step, summary["median"] / 2))
    found = faults(calibrated, summary=too_fast)
    assert found and all("draw=permutation" in one for one in found)
    assert all("GB/s, the rate of the link, in bs=" in one for one in found)


def test_a_device_time_above_the_host_time_in_all_runs_is_named(calibrated: Inputs) -> None:
    def said(name: str, device: str) -> list[str]:
        table = calibrated.tables["summary"].copy()
        for metric, by_run in (("gpu_time", device), ("host_time", "3e-05|3e-05|3e-05")):
            row = (table[["variant", "case", "metric"]] == [name, CASE, metric]).all(axis=1)
            assert row.sum() == 1
            table.loc[row, "median"] = float(by_run.split("|")[1])
            table.loc[row, "by_run"] = by_run
        return [one for one in faults(calibrated, summary=table) if "as device time" in one]

    above = "3.1e-05|3.2e-05|3.1e-05"
    assert said("v3_loads_first", above) == [
        f"{PLACE}/v3_loads_first: expected at most the host time, 30.00 µs, as device time"
        f" in {CASE}, got 32.00 µs"
    ]
    assert said("v3_loads_first", "3.1e-05|3.2e-05|2.9e-05") == []
    assert said("v3_loads_first", "3.1e-05|3.2e-05") == []
    assert said("ceiling_copy_engine", above) == []


def test_a_ceiling_that_is_beaten_without_a_reason_is_named(calibrated: Inputs) -> None:
    def said(against: str, metric: str, **changed: object) -> list[str]:
        table = calibrated.tables["ratios"].copy()
        pair = ["v4_grid_stride", against, metric]
        row = (table[["variant", "against", "metric"]] == pair).all(axis=1)
        row &= table["case"].str.startswith("bs=128,topk=2048")
        assert row.any()
        beaten: dict[str, Any] = {"ratio": 1.2, "ci_low": 1.1, "ci_high": 1.3, "verdict": "faster"}
        beaten |= {"by_run": "1.2|1.2|1.2", "runs": 3, "hosts": 3, **changed}
        for column, value in beaten.items():
            table.loc[row, column] = value
        return [one for one in faults(calibrated, ratios=table) if "`beats`" in one]

    expected = f"{PLACE}/v4_grid_stride: expected at most the speed of ceiling_sm_copy in bs=128"
    assert said("ceiling_sm_copy", "host_time")[0].startswith(expected)
    assert said("ceiling_copy_engine", "host_time")
    assert said("ceiling_copy_engine", "gpu_time") == []
    assert said("ceiling_sm_copy", "host_time", ci_low=0.9) == []


@pytest.mark.parametrize(
    ("machine", "published", "stops"),
    [("box", ["box"], True), ("box", [], False), ("", ["box"], True), ("", [], False)],
)
def test_faults_of_published_machines_stop_a_build(
    calibrated: Inputs, machine: str, published: list[str], stops: bool
) -> None:
    fault = Fault("page home", "expected content, got 'nothing'", machine)
    assert fatal([fault], published, calibrated) == [fault] * stops


def test_faults_of_a_variant_that_no_run_knows_stop_no_build(calibrated: Inputs) -> None:
    runs = [run.model_copy(update={"variants": {**run.variants}}) for run in calibrated.runs]
    for run in runs:
        run.variants.pop("v3_loads_first", None)
    newer = replace(calibrated, runs=runs)
    of_new, of_old = (Fault(one, "gone", "box", "h2d_gather") for one in ("v3_loads_first", "v0"))
    claims = calibrated.studies["h2d_gather"].claims
    about = next(one for one in claims if "v3_loads_first" in one.bounds_by_variant)
    of_claim = Fault(f"claim {about.id}", "gone", "box", "h2d_gather")
    assert fatal([of_new, of_old, of_claim], ["box"], newer) == [of_old]
    assert fatal([of_new, of_old, of_claim], ["box"], calibrated) == [of_new, of_old, of_claim]


def test_faults_of_a_study_that_is_newer_than_a_machines_runs_stop_no_build(
    calibrated: Inputs,
) -> None:
    last = max(run.start for run in calibrated.runs)
    of_study = [run for run in calibrated.runs if run.study == "h2d_gather"]
    others = [run for run in calibrated.runs if run.study != "h2d_gather"]
    fault = Fault("", "expected results, got none", "box", "h2d_gather")

    def faults(start: str) -> list[Fault]:
        elsewhere = [
            run.model_copy(update={"machine": "other", "start": start}) for run in of_study
        ]
        return fatal([fault], ["box"], replace(calibrated, runs=[*others, *elsewhere]))

    assert faults(last.replace("20", "21", 1)) == []
    assert faults("2000" + last[4:]) == [fault]  # its own results were lost


def test_readers_get_names_in_words(calibrated: Inputs) -> None:
    what = f"expected a result of v3_loads_first in {CASE}, got none"
    said = Fault("v3_loads_first", what, "box", "h2d_gather").sentence(calibrated)
    title = calibrated.studies["h2d_gather"].variant("v3_loads_first").title
    assert said.count(f"“{title}”") == 2 and "_" not in said
    assert "in bs 128, topk 2048, draw permutation, got none" in said
