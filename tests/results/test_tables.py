"""Tables of made-up results: fits and predictions, and what is left out."""

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
from analysis.results.model.fit import FITTED, INSIDE, OUTSIDE, held_back
from analysis.results.model.terms import NAMES, TERMS
from analysis.results.store.keys import LONGEST_S, SMALLEST
from analysis.results.tables import links
from analysis.results.tables.claims import MachineResults
from analysis.results.tables.of_study import REFUSED, put_together, study_tables
from analysis.results.tables.rows import TABLES, ClaimPartRow, read_table, rows_of
from analysis.results.tables.summary import summarise
from analysis.site.facts.inputs import Inputs
from analysis.study import Case, Study, Variant, discover
from analysis.study.claims.verdicts import MISSING, Missing, NotTested
from tests.linked import CALIBRATION, GATHER, TRUE, made_up, model_root, true_seconds
from tests.roots import make_inputs
from tests.study.claims.studies import NO_COUNTS, NO_MODEL
from tests.synthetic import CALLS, COPY, STUDIES, name_of, write_machine

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
    bad = always(ODD_S)
    write_machine(tmp_path, "bad-box", CALLS, rounds=2, run=RUNS[1], noise=0.0, seconds=bad)
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
def test_extreme_times_give_finite_tables(tmp_path: Path, values: tuple[float, ...]) -> None:
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
    rest = found.published[COPY.name], NO_MODEL, NO_COUNTS
    evidence = MachineResults(COPY, found.samples, *rest)
    with pytest.raises(Missing, match=f"{MISSING}no model prediction"):
        evidence.predicted_seconds("vectors", COPY.headline, "")
    with pytest.raises(Missing, match=f"{MISSING}vectors has not been measured in this case"):
        evidence.visits("vectors", "batch=9", "")
    stale = MachineResults(COPY, found.samples.assign(stale=True), *rest)
    with pytest.raises(NotTested, match="measured with other code: vectors") as reason:
        stale.visits("vectors", COPY.headline, "gpu_time")
    assert not isinstance(reason.value, Missing)


def test_held_back_rows_are_predicted_and_not_fitted(calibrated: Inputs, tmp_path: Path) -> None:
    """Nor has stale code a prediction."""
    model, parameters = (calibrated.tables[name] for name in ("model", "model_parameters"))
    assert list(parameters["parameter"]) == list(NAMES)
    assert set(model["binding"]) <= set(TERMS) and (model["margin"] >= 1).all()
    assert model["residual"].abs().max() < 0.05
    predicted = {variant.name for variant in GATHER.variants if variant.link}
    assert set(model.loc[model["study"] == GATHER.name, "variant"]) == predicted
    uses = model.groupby("study")["held_back"].agg(set)
    assert uses[GATHER.name] == {""} and uses[CALIBRATION.name] == {FITTED, INSIDE, OUTSIDE}
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
    other = make_inputs(root).tables
    assert other["model_parameters"].equals(parameters)
    model = other["model"]
    of_calibration = (model["study"] == CALIBRATION.name) & (model["held_back"] != FITTED)
    assert model.loc[of_calibration, "residual"].min() > 0.9
    assert {"v2_warp_per_token"} == {"v2_warp_per_token", "v3_loads_first"} & {*model["variant"]}


def test_a_fit_uses_all_runs_and_one_that_fails_ends_no_other(tmp_path: Path) -> None:
    """The time of a case is its median over runs, its error their spread, also that of the others
    for a case of one run. A fit that fails has the newest file, the field and the reason."""
    root, studies = model_root(tmp_path), {CALIBRATION.name: CALIBRATION}
    results, factors = root / "results", (1.0, 1.02, 1.1)
    for run, factor in zip(RUNS, factors, strict=False):

        def seconds(variant: Variant, case: Case, metric: str, factor: float = factor) -> float:
            return factor * true_seconds(variant, case, metric)

        write_machine(results, "box", CALIBRATION, seconds=seconds, rounds=1, run=run, noise=0.0)
    found = collect(results, studies)
    host, samples = found.machines["box"], found.samples
    is_rare = samples["case"].str.startswith("row_bytes=32,")
    once = samples[~is_rare | (samples["run"] == name_of(RUNS[0]))]
    every, rare, unverified, stale = (
        links.calibration(links.predictable(summarise(some, studies), host, studies))
        for some in (samples, once, samples.assign(verified=0), samples.assign(stale=True))
    )
    np.testing.assert_allclose(every["error"], np.std(np.log(factors), ddof=1), rtol=1e-3)
    assert set(every["runs"]) == {3} and sorted(set(rare["runs"])) == [1, 3]
    np.testing.assert_allclose(rare["error"], every["error"], rtol=1e-3)
    assert len(unverified) == len(stale) == 0
    known = discover(root)
    fits = links.collect_fits(results, known)
    assert set(fits) == {"box"} and isinstance(box := fits["box"], pd.DataFrame)
    assert set(box["runs"]) == {3} and math.isfinite(box["ci_low"]["link_rate"])
    assert box["value"]["link_rate"] == pytest.approx(TRUE.link_rate / 1.02, rel=0.01)
    with patch("analysis.results.tables.links.fit", side_effect=ValueError("not finite")):
        fits = links.collect_fits(results, known)
    texts = {name: study_tables(results, name, known, fits) for name in known}
    reason = put_together(texts, fits, results, tmp_path / "tables")["box: link model"]
    file_name = f"box/{CALIBRATION.name}/{name_of(RUNS[2])}.json"
    assert (
        reason
        == f"{file_name}: gpu_time: expected times that a link has, got ValueError: not finite"
    )


def test_tables_are_read_by_the_types_of_their_rows(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    # Text that looks like a number or a gap stays text.
    path.write_text(",".join(TABLES["skipped"]) + "\n007,s,None,NA,skipped,1,0\n")
    (skipped,) = read_table(path, TABLES["skipped"]).itertuples(index=False, name=None)
    assert skipped == ("007", "s", "None", "NA", "skipped", "1", 0)
    # A table without rows has columns and types; missing text is empty, a missing number NaN.
    types = TABLES["claim_parts"]
    assert [*types] == [field.name for field in fields(ClaimPartRow)]
    for text in ("", ",".join(types) + "\n"):
        path.write_text(text)
        empty = read_table(path, types)
        assert [str(empty[name].dtype) for name in ("part", "measured")] == ["int64", "float64"]
    part = pd.DataFrame([{"study": "copy", "part": 1, "hosts": 2}], columns=[*types])
    part.to_csv(path, index=False)
    (found,) = rows_of(read_table(path, types), ClaimPartRow)
    assert (found.reason, found.unit) == ("", "") and math.isnan(found.published)


def test_slow_imports_wait_for_their_use() -> None:
    """Snakemake reads the names of tables at each start; few jobs of the pipeline need scipy."""
    code = "import analysis.results.tables.rows, sys; assert 'pandas' not in sys.modules"
    code += "; import analysis.results.tables.of_study; assert not any(f'scipy.{name}' in"
    code += " sys.modules for name in ('stats', 'optimize'))"
    subprocess.run([sys.executable, "-c", code], check=True)
