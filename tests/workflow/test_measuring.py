"""The pipeline measures missing and stale results, and nothing else."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from analysis.results.store.runs import read_runs
from tests.synthetic import CALLS
from tests.workflow.pipeline import (
    ROUNDS,
    SAMPLES,
    SETTINGS,
    contents,
    copy_of_pipeline,
    snakemake,
    succeed,
)

HOST_ONLY = ("python", "compiled")


def planned(copy: Path) -> set[str]:
    """The rules that `measure` would run, without the target itself."""
    output = succeed(copy, "--dry-run", "measure")
    counted = output.partition("Job stats:")[2].partition("total")[0]
    return set(re.findall(r"^(\w+) +\d+$", counted, re.MULTILINE)) - {"measure"}


def runs(copy: Path, variant: str) -> list[str]:
    """The runs of a variant on disk, newest first."""
    found = read_runs(copy / "results" / "test-box" / "calls", None)
    return [run.about.run for run in found if variant in run.about.variants]


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pipeline with the synthetic studies, one of them measured. After each test, nothing is
    pending."""
    folder = copy_of_pipeline(tmp_path_factory.mktemp("copy") / "hotpath")
    succeed(folder, "measure")
    return folder


def test_measuring_writes_a_run_file_with_every_variant(copy: Path) -> None:
    (run,) = read_runs(copy / "results" / "test-box" / "calls", CALLS)
    rows = [row for row in run.rows if row.variant in HOST_ONLY]
    assert {row.variant for row in rows} == {*HOST_ONLY}
    assert {(row.status, row.verified) for row in rows} == {("ok", 1)}
    assert {row.round for row in rows} == set(range(ROUNDS))
    assert {row.status for row in run.rows if row.variant == "kernel"} in ({"skipped"}, {"ok"})
    assert "analysis.measure calls" in run.about.command
    # A copy without .git has no known commit.
    assert (run.about.commit, run.about.dirty, run.about.asked) == (None, None, [])


def test_fresh_results_are_not_measured_again(copy: Path) -> None:
    before = contents(copy / "results")
    assert planned(copy) == set()
    assert "calls: round" not in succeed(copy, "measure")
    assert contents(copy / "results") == before


def test_comments_and_file_times_measure_nothing(copy: Path) -> None:
    before = contents(copy / "results")
    edit(
        copy / "kernels" / "calls" / "python.py",
        "TURNS = 1",
        "# Enough.\nTURNS = 1",
    )
    edit(copy / "kernels" / "calls" / "bindings.cpp", "// Python's way in", "// The way in")
    edit(copy / "kernels" / "calls" / "study.yaml", "title: Calls that", "title: Some calls that")
    now = time.time_ns()
    for path in copy.rglob("*"):
        if path.is_file() and ".snakemake" not in path.parts:
            os.utime(path, ns=(now, now))
    assert planned(copy) == set()
    assert contents(copy / "results") == before


def test_only_settings_of_a_module_rebuild_it(copy: Path) -> None:
    def built() -> set[str]:
        plan = succeed(copy, "--dry-run", "build")
        return set(re.findall(r"Building (\S+/\S+) for", plan))

    succeed(copy, "build")
    description = copy / "kernels" / "calls" / "study.yaml"
    before = description.read_text()
    edit(description, "budget_s:", "# Seconds.\nbudget_s:")
    assert built() == set()
    edit(description, "- name: compiled", "- name: compiled\n    flags: [-DANEW]")
    assert built() == {"calls/compiled"}
    description.write_text(before)


def test_an_edited_variant_is_measured_again_with_its_baselines_only(
    copy: Path,
) -> None:
    before = {variant: runs(copy, variant) for variant in (*HOST_ONLY, "kernel")}
    files = contents(copy / "results")
    edit(copy / "kernels" / "calls" / "python.py", "TURNS = 1", "TURNS = 2")
    assert planned(copy) == {"measure_pending"}
    succeed(copy, "measure")
    assert runs(copy, "python")[1:] == before["python"]
    assert runs(copy, "compiled")[1:] == before["compiled"]
    assert runs(copy, "kernel") == before["kernel"]
    assert {path: contents(copy / "results")[path] for path in files} == files, "none is changed"
    assert planned(copy) == set()


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [
        (("--dry-run", "measure"), ()),
        pytest.param(("--list-rules",), (), marks=pytest.mark.long),
        pytest.param(("-n", "site"), ("grid=smoke",), marks=pytest.mark.long),
    ],
)
def test_a_dry_run_changes_nothing(
    copy: Path, arguments: tuple[str, ...], settings: tuple[str, ...]
) -> None:
    """The same holds if an earlier result is stale."""
    source = copy / "kernels" / "calls" / "python.py"
    text = source.read_text()
    edit(source, "TURNS = ", "TURNS = 1 + ")
    before = contents(copy / "build") | contents(copy / "results")
    succeed(copy, *arguments, settings=(*SETTINGS, *settings))
    assert contents(copy / "build") | contents(copy / "results") == before
    source.write_text(text)


def test_the_site_also_shows_studies_that_are_not_measured(copy: Path) -> None:
    (copy / "kernels" / "strides" / "bindings.cpp").touch()

    def studies(verb: str, *settings: str) -> set[str]:
        plan = succeed(copy, "--dry-run", "site", settings=(*SETTINGS, *settings))
        return set(re.findall(rf"{verb} (\w+)", plan))

    assert {"copy", "strides"} <= studies("Building")
    assert studies("Measuring", "machine=other-box") == {"calls"}
    assert studies("Building", "grid=smoke").isdisjoint({"copy", "strides"})


def test_a_variant_named_as_a_target_is_measured_again(copy: Path) -> None:
    before = {variant: runs(copy, variant) for variant in (*HOST_ONLY, "kernel")}
    python = CALLS.variant("python")
    visits = CALLS.shown_case(python).visits
    output = succeed(copy, "-f", "build/measured/calls/python")
    assert f"calls: round {ROUNDS} of {ROUNDS}" in output
    assert re.search(r"^calls: \d variants measured in \d cells$", output, re.MULTILINE)
    assert output.count("the commit is not known, so the results name none: git: ") == 1
    log = (copy / "build" / "logs" / "measure" / "calls" / "python.log").read_text()
    assert f"calls/python: {ROUNDS * SAMPLES * visits} samples" in log
    assert runs(copy, "python")[1:] == before["python"]
    assert runs(copy, "compiled")[1:] == before["compiled"]
    assert runs(copy, "kernel") == before["kernel"]
    assert planned(copy) == set()


def test_missing_results_are_measured_despite_a_marker(copy: Path) -> None:
    assert (copy / ".snakemake" / "hotpath" / "default" / "pending").exists()
    for path in (copy / "results" / "test-box" / "calls").iterdir():
        path.unlink()
    succeed(copy, "measure")
    assert len(runs(copy, "python")) == 1
    assert planned(copy) == set()


def test_the_smoke_grid_writes_under_build_only(copy: Path) -> None:
    def outside() -> dict[str, str]:
        return {
            name: digest
            for name, digest in contents(copy).items()
            if not name.startswith(("build/", ".snakemake/")) and "__pycache__" not in name
        }

    before, measured = outside(), contents(copy / ".snakemake" / "hotpath" / "default")
    succeed(copy, "measure", settings=(*SETTINGS, "grid=smoke"))
    assert outside() == before
    assert contents(copy / ".snakemake" / "hotpath" / "default") == measured
    (run,) = read_runs(copy / "build" / "smoke" / "results" / "test-box" / "calls", None)
    assert {row.round for row in run.rows if row.variant == "python"} == {0, 1}


@pytest.mark.long  # test_site.py sees a summary of one study
def test_the_summary_has_the_measured_cases(copy: Path) -> None:
    succeed(copy, "summary")
    lines = (copy / "build" / "summary.csv").read_text().splitlines()
    assert any(line.startswith("test-box,calls,python,calls=100,host_time,s,") for line in lines)
    assert (copy / "build" / "refused.json").read_text().strip() == "{}"


def test_a_wrong_output_fails_every_time_until_it_is_mended(copy: Path) -> None:
    source = copy / "kernels" / "calls" / "python.py"
    text = source.read_text()
    source.write_text(f"{text}\n\ndef call(calls: int) -> int:\n    return 0\n")
    for times in (1, 2):
        failed = snakemake(copy, "measure")
        assert failed.returncode != 0
        said = "error: calls: wrong output of again, python; marked failed in the results"
        assert said in failed.stdout.splitlines(), failed.stdout
        assert failed.stdout.count("calls: round") == ROUNDS * (times == 1)
    source.write_text(text)
    assert planned(copy) == set()
    succeed(copy, "measure")


def test_a_variant_that_is_no_python_stops_its_study_alone(copy: Path) -> None:
    source = copy / "kernels" / "calls" / "python.py"
    text = source.read_text()
    source.write_text("def call(:\n")
    failed = snakemake(copy, "measure")
    source.write_text(text)
    assert failed.returncode != 0
    (line,) = (one for one in failed.stdout.splitlines() if one.startswith("error: calls: "))
    assert "invalid syntax (python.py, line 1)" in line
