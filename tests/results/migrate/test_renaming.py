"""Renaming of results, which changes only names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from analysis.base.errors import FieldError, HotpathError
from analysis.results.migrate.renaming import Renames, Within, read_renames, rename_results
from analysis.results.store.results import load_variant
from analysis.study.claims.bounds import digests
from tests.editing import edit_json
from tests.results.store.runs import RUNS, store
from tests.synthetic import CALLS

CASE = CALLS.variant("kernel").cases[0].id
KEY, VALUE = CASE.split(",")[0].split("=")
WITHIN = Within(
    variants={"kernel": "gpu_kernel", "python": "interpreted"},
    metrics={"host_time": "call_time"},
    keys={KEY: "amount"},
    values={"amount": {VALUE: "few"}},
)
RENAMES = Renames(studies={"calls": "invocations"}, within={"invocations": WITHIN})
DESCRIPTION = {
    "headline": {KEY: VALUE},
    "claims": [
        {"id": "slow", "test": {"kind": "speedup", "of": "kernel", "over": "python", "metric":
         "host_time", "case": CASE, "at_least": 2}},
    ],
}  # fmt: skip


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    folder = tmp_path / "revision" / "calls"
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_text(yaml.safe_dump(DESCRIPTION))
    return {"calls": folder}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    for run in RUNS[:2]:
        found = store(tmp_path / "results", run)

    def named(document: dict[str, Any]) -> None:
        document["beside"] = ["python", "compiled"]
        document["bounds"] = {"slow": digests(DESCRIPTION)["slow"][0]}
        document["captures"] = {"ncu": {"status": "captured", "case": CASE}}

    edit_json(found.with_suffix(".json"), named)
    found.with_suffix(".ncu.csv").write_text(f'case,kernel\n"{CASE}",k\n')
    return found


def test_results_have_the_new_names(path: Path, folders: dict[str, Path]) -> None:
    before = load_variant(path)
    assert rename_results(path.parents[2], RENAMES, folders) == 1
    assert not path.parent.exists()
    after = load_variant(path.parents[1] / "invocations" / "gpu_kernel.csv")
    assert after.samples == [
        replace(
            sample,
            study="invocations",
            variant="gpu_kernel",
            case=WITHIN.case(sample.case),
            metric=WITHIN.metrics.get(sample.metric, sample.metric),
        )
        for sample in before.samples
    ]
    assert WITHIN.case(CASE).startswith("amount=few")
    assert after.provenance["beside"] == ["interpreted", "compiled"]
    assert after.provenance["captures"]["ncu"]["case"] == WITHIN.case(CASE)
    assert "amount=few" in (path.parents[1] / "invocations" / "gpu_kernel.ncu.csv").read_text()
    assert (after.provenance["study"], after.provenance["variant"]) == (after.study, after.variant)
    assert unrenamed(after.provenance) == unrenamed(before.provenance)
    for one, other in zip(after.provenance["runs"], before.provenance["runs"], strict=True):
        assert unrenamed(one) == unrenamed(other)


def unrenamed(run: dict[str, Any]) -> dict[str, Any]:
    """What has no names of variants, cases or metrics."""
    named = {"beside", "captures", "bounds", "samples_sha256", "study", "variant", "runs"}
    return {key: value for key, value in run.items() if key not in named}


def test_a_run_names_the_bound_of_the_renamed_comparison(
    path: Path, folders: dict[str, Path]
) -> None:
    rename_results(path.parents[2], RENAMES, folders)
    today = {
        "headline": {"amount": "few"},
        "claims": [
            {"id": "slow", "test": DESCRIPTION["claims"][0]["test"] | {  # type: ignore[index]
                "of": "gpu_kernel", "over": "interpreted", "metric": "call_time",
                "case": WITHIN.case(CASE)}},
        ],
    }  # fmt: skip
    after = load_variant(path.parents[1] / "invocations" / "gpu_kernel.csv")
    assert after.provenance["bounds"] == {"slow": digests(today)["slow"][0]}


def test_results_missing_from_the_map_are_unchanged(path: Path, folders: dict[str, Path]) -> None:
    files = {file: file.read_bytes() for file in path.parent.iterdir()}
    others = Renames(within={"copy": WITHIN})
    assert rename_results(path.parents[2], others, folders) == 0
    assert {file: file.read_bytes() for file in path.parent.iterdir()} == files


def test_existing_name_is_rejected(tmp_path: Path, path: Path) -> None:
    store(tmp_path / "results", RUNS[0], variant="python")
    taken = Renames(within={"calls": Within(variants={"kernel": "python"})})
    with pytest.raises(HotpathError, match="another new name"):
        rename_results(path.parents[2], taken, {})
    assert load_variant(path).samples


def test_a_result_of_another_study_is_not_replaced(path: Path) -> None:
    other = path.parents[1] / "invocations" / path.name
    other.parent.mkdir()
    other.write_text("another result")
    with pytest.raises(HotpathError, match="expected a name that no result has"):
        rename_results(path.parents[2], Renames(studies={"calls": "invocations"}), {})
    assert other.read_text() == "another result"
    assert load_variant(path).samples


def test_variants_may_change_names_with_each_other(tmp_path: Path, path: Path) -> None:
    store(tmp_path / "results", RUNS[0], variant="python")
    names = {"kernel": "python", "python": "kernel"}
    rename_results(path.parents[2], Renames(within={"calls": Within(variants=names)}), {})
    assert len(load_variant(path).run_provenance()) == 1
    assert len(load_variant(path.with_stem("python")).run_provenance()) == 2


def test_a_map_file_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "map.yaml"
    file.write_text("studies: {calls: invocations}\nwithin: {invocations: {keys: {n: amount}}}\n")
    renames = read_renames(file)
    assert renames.variant("calls", "kernel") == ("invocations", "kernel")
    assert renames.of("invocations").case("n=3,order=random") == "amount=3,order=random"
    assert renames.file("kernels/calls/workload.py") == "kernels/invocations/workload.py"
    file.write_text("variants: {kernel: other}\n")
    with pytest.raises(FieldError, match=r"map\.yaml: .*variants"):
        read_renames(file)


def test_a_folder_moves_with_all_that_is_in_it() -> None:
    renames = Renames(studies={"old": "new"}, files={"sum": "kernels/sum", "sum.py": "all.py"})
    assert renames.file("sum") == "kernels/sum"
    assert renames.file("sum/rows.h") == "kernels/sum/rows.h"
    assert renames.file("summary/rows.h") == "summary/rows.h"
    assert renames.file("sum.py") == "all.py"
    assert renames.file("kernels/old") == "kernels/new"
    assert renames.file("kernels/old/rows.h") == "kernels/new/rows.h"
