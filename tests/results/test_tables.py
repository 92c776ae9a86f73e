"""Tables of made-up results: fits and predictions, repeats, and what is left out."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

from analysis.results.collect import collect
from analysis.results.model.fit import NAMES
from analysis.results.model.terms import TERMS
from analysis.results.store.keys import LONGEST_S, SMALLEST
from analysis.results.store.records import Counter
from analysis.results.tables.claims import MachineResults
from analysis.results.tables.links import (
    calibration,
    collect_fits,
    fits_text,
    predictable,
    read_fits,
)
from analysis.results.tables.of_study import REFUSED, put_together, study_tables
from analysis.results.tables.rows import (
    DTYPES,
    TABLES,
    ClaimPartRow,
    SkippedRow,
    columns,
    read_table,
    rows_of,
)
from analysis.results.tables.summary import summarise
from analysis.site.facts.inputs import Inputs
from analysis.study import Case, Study, Variant, discover
from analysis.study.calibration import FITTED, INSIDE, OUTSIDE, held_back
from analysis.study.claims.verdicts import MISSING, Missing, NotTested
from tests.linked import CALIBRATION, GATHER, TRUE, made_up, model_root, true_seconds
from tests.roots import make_inputs
from tests.study.claims.studies import NO_COUNTS, NO_MODEL
from tests.synthetic import CALLS, COPY, STUDIES, name_of, set_capture, write_machine

RUNS = [f"2026-01-0{day}T00:00:00Z" for day in range(1, 5)]
SUMMARISE = "analysis.results.tables.summary.summarise"
ODD_S = 123.0
"""A time that the tables of this test cannot be made of."""


def odd(samples: pd.DataFrame, studies: dict[str, Study]) -> pd.DataFrame:
    if (samples["value"] == ODD_S).any():
        raise OverflowError("math range error")
    return summarise(samples, studies)


def always(seconds: float) -> Callable[[Variant, Case, str], float]:
    return lambda *_: seconds


def test_a_run_that_tables_cannot_be_made_of_is_left_out_alone(tmp_path: Path) -> None:
    for machine in ("good-box", "bad-box"):
        for run in RUNS[:3]:
            write_machine(tmp_path, machine, CALLS, rounds=2, run=run)
    write_machine(
        *(tmp_path, "bad-box", CALLS), rounds=2, run=RUNS[1], noise=0.0, seconds=always(ODD_S)
    )
    with patch(SUMMARISE, odd):
        texts = study_tables(tmp_path, CALLS.name, STUDIES, {})
    ((name, reason),) = json.loads(texts[REFUSED]).items()
    assert name == f"bad-box/calls/{name_of(RUNS[1])}.json"
    assert reason.startswith(f"{name}: ") and reason.isprintable()
    assert "expected values that tables can be made of, got OverflowError: math range" in reason
    summary = pd.read_csv(StringIO(texts["summary.csv"]))
    assert dict(summary.groupby("machine")["runs"].max()) == {"bad-box": 2, "good-box": 3}
    # An error of every run is no fault of results.
    with patch(SUMMARISE, side_effect=KeyError("typo")), pytest.raises(KeyError, match="typo"):
        study_tables(tmp_path, CALLS.name, STUDIES, {})


@pytest.mark.parametrize("values", [(SMALLEST, LONGEST_S), (LONGEST_S,), (SMALLEST,)])
def test_the_ends_of_the_range_of_times_give_finite_tables(
    tmp_path: Path, values: tuple[float, ...]
) -> None:
    def seconds(variant: Variant, *_: object) -> float:
        return values[CALLS.variant_names.index(variant.name) % len(values)]

    for run in RUNS:
        write_machine(tmp_path, "box", CALLS, rounds=2, run=run, noise=0.0, seconds=seconds)
    texts = study_tables(tmp_path, CALLS.name, STUDIES, {})
    assert json.loads(texts[REFUSED]) == {}
    for name in ("summary", "ratios", "repeatability", "claims"):
        numbers = pd.read_csv(StringIO(texts[f"{name}.csv"])).select_dtypes("number")
        assert not np.isinf(numbers.to_numpy()).any(), name


def test_evidence_that_could_be_had_is_missing_and_other_code_is_not_tested(tmp_path: Path) -> None:
    write_machine(tmp_path, "box", COPY)
    found = collect(tmp_path, STUDIES)

    def evidence(samples: pd.DataFrame) -> MachineResults:
        return MachineResults(COPY, samples, found.published[COPY.name], NO_MODEL, NO_COUNTS)

    with pytest.raises(Missing, match=f"{MISSING}no model prediction"):
        evidence(found.samples).predicted_seconds("vectors", COPY.headline, "")
    with pytest.raises(Missing, match=f"{MISSING}vectors has not been measured in this case"):
        evidence(found.samples).visits("vectors", "batch=9", "")
    with pytest.raises(NotTested, match="measured with other code: vectors") as reason:
        evidence(found.samples.assign(stale=True)).visits("vectors", COPY.headline, "gpu_time")
    assert not isinstance(reason.value, Missing)


def test_predictions_stand_beside_times(calibrated: Inputs) -> None:
    model, parameters = (calibrated.tables[name] for name in ("model", "model_parameters"))
    assert list(parameters["parameter"]) == list(NAMES)
    assert set(model["binding"]) <= set(TERMS) and (model["margin"] >= 1).all()
    residual = model["measured"] / model["predicted"] - 1
    assert [*model["residual"]] == pytest.approx([*residual], abs=1e-6)
    assert model["residual"].abs().max() < 0.05
    predicted = {variant.name for variant in GATHER.variants if variant.link}
    assert set(model.loc[model["study"] == GATHER.name, "variant"]) == predicted
    uses = model.groupby("study")["held_back"].agg(set)
    assert uses[GATHER.name] == {""} and uses[CALIBRATION.name] == {FITTED, INSIDE, OUTSIDE}
    counters = calibrated.tables["model_counters"].set_index("metric")
    assert len(counters) == 2
    found = counters.loc["pcie__read_bytes.sum"]
    assert found["predicted"] == pytest.approx(262144 * (672 + 6 * 12))
    assert found["counted"] == pytest.approx(195e6)
    assert found["residual"] == pytest.approx(195e6 / (262144 * 744) - 1, rel=1e-4)


def test_held_back_rows_do_not_take_part_in_the_fit(calibrated: Inputs, tmp_path: Path) -> None:
    """Nor has stale code a prediction, nor does a bad capture leave out more than itself."""
    out = {
        (variant.name, case.id)
        for variant in CALIBRATION.variants
        for case, kept in zip(variant.cases, held_back(CALIBRATION, variant), strict=True)
        if kept != FITTED
    }

    def broken(variant: Variant, case: Case, metric: str) -> float:
        return true_seconds(variant, case, metric) * (1 + ((variant.name, case.id) in out))

    root = made_up(tmp_path, broken)
    source = root / "kernels" / GATHER.name / "v3_loads_first.cu"
    source.write_text(source.read_text() + "int changed;\n")
    counted = [Counter("v3_loads_first", "case without a pair", "k", "m", "", 1.0)]
    about = set_capture(
        *(root / "results", "box", GATHER, "counters"), {"v3_loads_first": {}}, counted
    )
    other = make_inputs(root)
    assert other.tables["model_parameters"].equals(calibrated.tables["model_parameters"])
    model = other.tables["model"]
    of_calibration = (model["study"] == CALIBRATION.name) & (model["held_back"] != FITTED)
    assert model.loc[of_calibration, "residual"].min() > 0.9
    assert {"v2_warp_per_token"} == {"v2_warp_per_token", "v3_loads_first"} & {*model["variant"]}
    ((name, reason),) = other.refused.items()
    assert name == f"box/{GATHER.name}/{about.name}"
    assert f"{about.stem}.csv: line 2: case: expected key=value pairs" in reason
    assert other.tables["model_counters"].empty


def test_a_fit_uses_all_runs_and_is_the_same_after_it_was_a_file(tmp_path: Path) -> None:
    """The time of a case is its median over runs, its error their spread, also that of the others
    for a case of one run."""
    root, studies = model_root(tmp_path), {CALIBRATION.name: CALIBRATION}
    factors = dict(zip(RUNS[:3], (1.0, 1.02, 1.1), strict=True))
    for run, factor in factors.items():

        def seconds(variant: Variant, case: Case, metric: str, factor: float = factor) -> float:
            return factor * true_seconds(variant, case, metric)

        write_machine(
            root / "results", "box", CALIBRATION, seconds=seconds, rounds=1, run=run, noise=0.0
        )
    found = collect(root / "results", studies)
    host, samples = found.machines["box"], found.samples
    is_rare = samples["case"].str.startswith("row_bytes=32,")
    once = samples[~is_rare | (samples["run"] == name_of(RUNS[0]))]
    every, rare = (
        calibration(predictable(summarise(some, studies), host, studies))
        for some in (samples, once)
    )
    np.testing.assert_allclose(every.errors, np.std(np.log([*factors.values()]), ddof=1), rtol=1e-3)
    assert set(every.runs) == {3} and sorted(set(rare.runs)) == [1, 3]
    np.testing.assert_allclose(rare.errors, every.errors, rtol=1e-3)
    for spoiled in ({"verified": 0}, {"stale": True}):
        rows = predictable(summarise(samples.assign(**spoiled), studies), host, studies)
        assert rows.empty and len(calibration(rows).seconds) == 0
    fits, file = collect_fits(root / "results", discover(root)), tmp_path / "links.json"
    file.write_text(fits_text(fits))
    read = read_fits(file)
    assert fits_text(read) == fits_text(fits) and set(read) == {"box"}
    assert isinstance(box := read["box"], pd.DataFrame)
    assert set(box["runs"]) == {3} and math.isfinite(box["ci_low"]["link_rate"])
    assert box["value"]["link_rate"] == pytest.approx(TRUE.link_rate / 1.02, rel=0.01)


def test_a_fit_that_fails_is_left_out_with_file_field_and_reason(tmp_path: Path) -> None:
    root = made_up(tmp_path)
    studies = discover(root)
    failing = ValueError("Residuals are not finite in the initial point.")
    with patch("analysis.results.tables.links.fit", side_effect=failing):
        fits = collect_fits(root / "results", studies)
    of_studies = {n: study_tables(root / "results", n, studies, fits) for n in studies}
    refused = put_together(of_studies, fits, root / "results", tmp_path / "tables")
    reason = refused["box: link model"]
    assert reason.startswith(f"box/{CALIBRATION.name}/")
    assert ".json: gpu_time: expected times that a link has, got ValueError: Residuals" in reason


def test_a_run_that_differs_is_called_different_between_runs_only(tmp_path: Path) -> None:
    """The times of two entries of one program, in each run and between runs."""
    for run, factor in zip(RUNS, (1.0, 1.0, 1.5, 1.0), strict=True):
        write_machine(tmp_path, "box", CALLS, run=run, rounds=3, noise=0.0, seconds=always(factor))
    texts = study_tables(tmp_path, CALLS.name, STUDIES, {})
    repeats = pd.read_csv(StringIO(texts["repeats.csv"]))
    found = repeats[repeats["metric"] == "host_time"]
    assert set(zip(found["variant"], found["against"], strict=True)) == {("again", "python")}
    assert [*found["run"]] == [*map(name_of, RUNS)] and set(found["verdict"]) == {"same"}
    assert [*found["between_ratio"]] == pytest.approx([1, 1, 1 / 1.5, 1])
    assert [*found["between_verdict"]] == ["unclear", "unclear", "slower", "unclear"]


def test_tables_are_read_by_the_types_of_their_rows(tmp_path: Path) -> None:
    assert {str(f.type) for kind in TABLES.values() for f in fields(kind)} == set(DTYPES)
    path = tmp_path / "s.csv"
    # Text that looks like a number or a gap stays text.
    path.write_text(",".join(columns(SkippedRow)) + "\n007,s,None,NA,skipped,1,0\n")
    assert rows_of(read_table(path, SkippedRow), SkippedRow) == [
        SkippedRow("007", "s", "None", "NA", "skipped", "1", 0)
    ]
    # A table without rows has columns and types; missing text is empty, a missing number NaN.
    for text in ("", ",".join(columns(ClaimPartRow)) + "\n"):
        path.write_text(text)
        empty = read_table(path, ClaimPartRow)
        assert list(empty.columns) == columns(ClaimPartRow)
        assert [str(empty[name].dtype) for name in ("part", "measured")] == ["int64", "float64"]
    part = pd.DataFrame([{"study": "copy", "part": 1, "hosts": 2}], columns=columns(ClaimPartRow))
    part.to_csv(path, index=False)
    (found,) = rows_of(read_table(path, ClaimPartRow), ClaimPartRow)
    assert (found.reason, found.unit) == ("", "") and math.isnan(found.published)


@pytest.mark.parametrize(
    ("module", "slow"),
    [
        # Snakemake reads the names of tables at each start.
        ("analysis.results.tables.rows", "pandas"),
        # Every job of the pipeline would wait for these; they take longer than most studies.
        ("analysis.results.tables.of_study", "scipy.stats"),
        ("analysis.results.tables.of_study", "scipy.optimize"),
    ],
)
def test_a_slow_import_waits_for_its_use(module: str, slow: str) -> None:
    code = f"import {module}, sys; print({slow!r} in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout.strip() == "False", found.stderr
