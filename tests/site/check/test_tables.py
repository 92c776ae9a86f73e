"""Faults of tables: gaps where samples are fresh, and rates that no link carries."""

import re
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from analysis.site.check import Fault, fatal
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
    gone = (summary["variant"] == "v1_vectorized") & summary["case"].str.startswith(CASE[:16])
    first = min(summary.loc[gone, "case"])
    what = f"expected a result or a reason in {first} and 1 more, got none"
    assert faults(calibrated, summary=summary[~gone]) == [f"{PLACE}/v1_vectorized: {what}"]
    (fault,) = faults(calibrated, summary=summary[summary["study"] != "h2d_gather"])[:1]
    assert fault == f"{PLACE}: expected results, got none"


def test_a_parameter_or_a_prediction_without_a_value_is_named(calibrated: Inputs) -> None:
    parameters, model = (calibrated.tables[name] for name in ("model_parameters", "model"))
    is_gone = parameters["parameter"] == "copy_engine_start_up"
    unknown = parameters.assign(value=parameters["value"].mask(is_gone))
    assert faults(calibrated, model_parameters=unknown) == [
        "box: link_calibration: expected parameters of the model, got none for copy_engine_start_up"
    ]
    (fault,) = faults(calibrated, model=model[model["variant"] != "v3_loads_first"])
    assert fault.startswith(f"{PLACE}/v3_loads_first: expected a prediction in bs=")


def test_a_claim_that_lacks_evidence_or_is_gone_is_named(calibrated: Inputs) -> None:
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
    bounds = {"gone": ["0" * 12]}
    runs = [one.model_copy(update={"bounds": {**one.bounds, **bounds}}) for one in calibrated.runs]
    found = {str(one) for one in table_faults(replace(calibrated, runs=runs))}
    recorded = "expected it in study.yaml, since runs recorded its bounds, got none"
    assert f"{PLACE}/claim gone: {recorded}" in found


def test_a_rate_beyond_that_of_the_link_is_named(calibrated: Inputs) -> None:
    """Only where every byte crosses the link once: repeated rows may be in the L2 cache."""
    summary = calibrated.tables["summary"]
    is_step = (summary["variant"] == "v4_grid_stride") & (summary["metric"] == "gpu_time")
    too_fast = summary.assign(median=summary["median"].mask(is_step, summary["median"] / 2))
    found = faults(calibrated, summary=too_fast)
    assert found and all("draw=permutation" in one for one in found)
    assert all("GB/s, the rate of the link, in bs=" in one for one in found)


def changed(table: pd.DataFrame, where: dict[str, str], **values: Any) -> pd.DataFrame:
    """A copy with these values in the rows that have those others; a case by how it begins."""
    rows = table["case"].str.startswith(CASE)
    rows &= (table[[*where]] == list(where.values())).all(axis=1)
    assert rows.sum() == 1
    return table.assign(**{name: table[name].mask(rows, one) for name, one in values.items()})


@pytest.mark.parametrize(
    ("variant", "by_run", "is_named"),
    [
        ("v3_loads_first", "3.1e-05|3.2e-05|3.1e-05", True),
        ("v3_loads_first", "3.1e-05|3.2e-05|2.9e-05", False),
        ("v3_loads_first", "3.1e-05|3.2e-05", False),
        ("ceiling_copy_engine", "3.1e-05|3.2e-05|3.1e-05", False),
    ],
)
def test_a_device_time_above_the_host_time_in_all_runs_is_named(
    calibrated: Inputs, variant: str, by_run: str, is_named: bool
) -> None:
    table = calibrated.tables["summary"]
    for metric, runs in (("gpu_time", by_run), ("host_time", "3e-05|3e-05|3e-05")):
        median = float(runs.split("|")[1])
        where = {"variant": variant, "metric": metric}
        table = changed(table, where, median=median, by_run=runs)
    found = [one for one in faults(calibrated, summary=table) if "as device time" in one]
    what = f"30.00 µs, as device time in {CASE}, got 32.00 µs"
    assert found == [f"{PLACE}/{variant}: expected at most the host time, {what}"] * is_named


@pytest.mark.parametrize(
    ("against", "metric", "ci_low", "is_named"),
    [
        ("ceiling_sm_copy", "host_time", 1.1, True),
        ("ceiling_copy_engine", "host_time", 1.1, True),
        ("ceiling_copy_engine", "gpu_time", 1.1, False),
        ("ceiling_sm_copy", "host_time", 0.9, False),
    ],
)
def test_a_ceiling_that_is_beaten_without_a_reason_is_named(
    calibrated: Inputs, against: str, metric: str, ci_low: float, is_named: bool
) -> None:
    beaten: dict[str, Any] = {"ratio": 1.2, "ci_low": ci_low, "ci_high": 1.3, "verdict": "faster"}
    beaten |= {"by_run": "1.2|1.2|1.2", "runs": 3, "hosts": 3}
    where = {"variant": "v4_grid_stride", "against": against, "metric": metric}
    table = changed(calibrated.tables["ratios"], where, **beaten)
    found = [one for one in faults(calibrated, ratios=table) if "`beats`" in one]
    assert bool(found) == is_named
    begin = f"{PLACE}/v4_grid_stride: expected at most the speed of {against} in bs=128"
    assert all(one.startswith(begin) for one in found)


@pytest.mark.parametrize(
    ("machine", "published", "stops"),
    [("box", ["box"], True), ("box", [], False), ("", ["box"], True), ("", [], False)],
)
def test_faults_of_published_machines_stop_a_build(
    calibrated: Inputs, machine: str, published: list[str], stops: bool
) -> None:
    fault = Fault("page home", "expected content, got 'nothing'", machine)
    assert fatal([fault], published, calibrated) == [fault] * stops


def test_faults_of_what_is_newer_than_a_machines_runs_stop_no_build(calibrated: Inputs) -> None:
    study, of_old = "h2d_gather", Fault("v0", "gone", "box", "h2d_gather")
    about = next(
        one for one in calibrated.studies[study].claims if "v3_loads_first" in one.bounds_by_variant
    )
    found = [of_old]
    found += [Fault(part, "gone", "box", study) for part in ("v3_loads_first", f"claim {about.id}")]
    runs = [run.model_copy(update={"variants": {**run.variants}}) for run in calibrated.runs]
    for run in runs:
        run.variants.pop("v3_loads_first", None)
    assert fatal(found, ["box"], replace(calibrated, runs=runs)) == [of_old]
    assert fatal(found, ["box"], calibrated) == found
    # A study whose first run, on another machine, is later than all runs of this one.
    fault = Fault("", "expected results, got none", "box", study)
    last = max(run.start for run in calibrated.runs)
    for start, is_lost in ((last.replace("20", "21", 1), False), ("2000" + last[4:], True)):
        moved = {"machine": "other", "start": start}
        runs = [
            run.model_copy(update=moved if run.study == study else {}) for run in calibrated.runs
        ]
        assert fatal([fault], ["box"], replace(calibrated, runs=runs)) == [fault] * is_lost
