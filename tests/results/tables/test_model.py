"""The tables of the model: predictions beside times, parameters, and counters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.results.model.fit import NAMES
from analysis.results.model.terms import TERMS, term_seconds, work_of
from analysis.results.store.records import Counter
from analysis.results.tables.model import MODEL_COLUMNS, PARAMETER_COLUMNS
from analysis.site.facts.inputs import Inputs
from analysis.study import Case, Variant
from analysis.study.access import access_of
from analysis.study.calibration import FITTED, INSIDE, OUTSIDE, held_back
from tests.linked import CALIBRATION, GATHER, SMS, TRUE, made_up, model_root, true_seconds
from tests.roots import make_inputs
from tests.synthetic import set_capture, write_machine


def test_tables_have_the_columns_others_read(calibrated: Inputs, calibrated_root: Path) -> None:
    model = pd.read_csv(calibrated_root / "build" / "model.csv")
    parameters = pd.read_csv(calibrated_root / "build" / "model_parameters.csv")
    assert list(model) == MODEL_COLUMNS
    assert list(parameters) == PARAMETER_COLUMNS
    assert list(parameters["parameter"]) == list(NAMES)
    assert set(model["binding"]) <= set(TERMS)
    assert (model["margin"] >= 1).all()
    step = GATHER.variant("v3_loads_first")
    rows = model[(model["variant"] == step.name) & (model["metric"] == "gpu_time")]
    margins = dict(zip(rows["case"], rows["margin"], strict=True))
    for case in step.cases:
        access = access_of(step, case)
        assert access is not None
        terms = term_seconds(np.array([work_of(access, SMS)]), TRUE.values())[0]
        *_, second, largest = sorted(terms)
        assert margins[case.id] == pytest.approx(largest / second, rel=0.15)
    residual = model["measured"] / model["predicted"] - 1
    assert model["residual"].to_numpy() == pytest.approx(residual.to_numpy(), abs=1e-6)
    predictable = {variant.name for variant in GATHER.variants if variant.link}
    assert set(model.loc[model["study"] == GATHER.name, "variant"]) == predictable
    assert model.loc[model["study"] == GATHER.name, "held_back"].isna().all()
    assert set(model["held_back"].dropna()) == {INSIDE, OUTSIDE}
    assert model["residual"].abs().max() < 0.05


def test_held_back_rows_do_not_take_part_in_the_fit(calibrated: Inputs, tmp_path: Path) -> None:
    out = {
        (variant.name, case.id)
        for variant in CALIBRATION.variants
        for case, kept in zip(variant.cases, held_back(CALIBRATION, variant), strict=True)
        if kept != FITTED
    }

    def broken(variant: Variant, case: Case, metric: str) -> float:
        return true_seconds(variant, case, metric) * (1 + ((variant.name, case.id) in out))

    other = make_inputs(made_up(tmp_path, broken))
    assert other.tables["model_parameters"].equals(calibrated.tables["model_parameters"])
    calibration = other.tables["model"][other.tables["model"]["study"] == CALIBRATION.name]
    assert calibration.loc[calibration["held_back"] != FITTED, "residual"].min() > 0.9


def test_a_fit_uses_all_runs(tmp_path: Path) -> None:
    root = model_root(tmp_path)
    for number, slower in enumerate((0.9, 1.0, 1.1)):
        run = f"2026-01-0{number + 1}T00:00:00Z"

        def seconds(variant: Variant, case: Case, metric: str, slower: float = slower) -> float:
            return true_seconds(variant, case, metric) * slower

        write_machine(root / "results", "box", CALIBRATION, seconds=seconds, rounds=4, run=run)
    rows = {row.parameter: row for row in make_inputs(root).parameters}
    assert {row.runs for row in rows.values()} == {3}
    assert rows["link_rate"].value == pytest.approx(TRUE.link_rate, rel=0.01)


def test_stale_results_are_not_compared(tmp_path: Path) -> None:
    root = made_up(tmp_path)
    source = root / "kernels" / GATHER.name / "v3_loads_first.cu"
    source.write_text(source.read_text() + "int changed;\n")
    model = make_inputs(root).tables["model"]
    assert "v3_loads_first" not in set(model["variant"])
    assert "v2_warp_per_token" in set(model["variant"])


def test_counters_are_compared_in_bytes(calibrated: Inputs) -> None:
    table = calibrated.tables["model_counters"].set_index("metric")
    assert len(table) == 2
    bytes_read = table.loc["pcie__read_bytes.sum"]
    assert bytes_read["predicted"] == pytest.approx(262144 * (672 + 6 * 12))
    assert bytes_read["counted"] == pytest.approx(195e6)
    assert bytes_read["residual"] == pytest.approx(195e6 / (262144 * 744) - 1, rel=1e-4)


def test_a_malformed_capture_is_left_out_alone(tmp_path: Path) -> None:
    root = model_root(tmp_path)
    write_machine(root / "results", "box", GATHER)
    counted = [Counter("v3_loads_first", "case without a pair", "k", "m", "", 1.0)]
    about = set_capture(
        root / "results", "box", GATHER, "counters", {"v3_loads_first": {}}, counted
    )
    inputs = make_inputs(root)
    ((name, reason),) = inputs.refused.items()
    assert name == f"box/{GATHER.name}/{about.name}"
    assert f"{about.stem}.csv: line 2: case: expected key=value pairs" in reason
    assert not inputs.tables["summary"].empty and inputs.tables["model_counters"].empty
