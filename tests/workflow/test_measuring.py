"""The pipeline measures missing and stale results and nothing else; on machines of a cluster."""

import json
import os
import re
import shutil
import time
from pathlib import Path

import pytest
import yaml

from analysis.results.store.runs import Run, read_runs
from tests.editing import replace_in
from tests.measure.studies import contents
from tests.workflow.pipeline import ROUNDS, SETTINGS, add_modules, copy_of_pipeline, succeed

HOST_ONLY = ("python", "compiled")
MARK = Path(".snakemake", "hotpath", "default", "pending")


def planned(copy: Path, target: str = "measure", *settings: str) -> str:
    """The jobs of a target by a dry run, one a line."""
    output = succeed(copy, "--dry-run", target, settings=(*SETTINGS, *settings))
    return output.partition("\ntotal ")[2].partition("Job stats")[0]


def runs(copy: Path, results: str = "results") -> list[Run]:
    """The runs on disk, newest first."""
    return [*read_runs(copy / results / "test-box" / "calls", None)]


def runs_by_variant(copy: Path) -> dict[str, list[str]]:
    return {
        variant: [run.about.run for run in runs(copy) if variant in run.about.variants]
        for variant in (*HOST_ONLY, "kernel")
    }


def outside_of_build(copy: Path) -> dict[str, bytes]:
    made = ("build/", ".snakemake/")
    files = contents(copy).items()
    return {k: v for k, v in files if not k.startswith(made) and "__pycache__" not in k}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pipeline with the synthetic studies, one of them measured. After each test, nothing is
    pending."""
    folder = copy_of_pipeline(tmp_path_factory.mktemp("copy") / "hotpath")
    add_modules(folder)
    succeed(folder, "measure")
    return folder


def test_only_what_counts_for_a_module_or_a_result_makes_it_anew(copy: Path) -> None:
    calls, before = copy / "kernels" / "calls", contents(copy / "results")
    description = calls / "study.yaml"
    text = description.read_text()
    (calls / "compiled.cpp").touch()
    succeed(copy, "build")
    replace_in(description, "budget_s:", "# Seconds.\nbudget_s:")
    assert "module" not in planned(copy, "build")
    replace_in(description, "{name: compiled,", "{name: compiled, flags: [-DANEW],")
    rebuilt = re.findall(r"^module (.*)", planned(copy, "build"), re.MULTILINE)
    assert rebuilt == ["calls/compiled"]
    description.write_text(text)

    replace_in(calls / "python.py", "TURNS = 1", "# Enough.\nTURNS = 1")
    replace_in(calls / "bindings.cpp", "// Python's way in", "// The way in")
    replace_in(description, "title: Calls that", "title: Calls which")
    now = time.time_ns()
    for path in copy.rglob("*"):
        if path.is_file() and ".snakemake" not in path.parts:
            os.utime(path, ns=(now, now))
    assert "Measuring" not in planned(copy)
    assert contents(copy / "results") == before


@pytest.mark.parametrize("is_named", [False, True])
def test_an_edited_or_named_variant_is_measured_with_its_baselines(
    copy: Path, is_named: bool
) -> None:
    before, files = runs_by_variant(copy), contents(copy / "results")
    if is_named:
        output = succeed(copy, "-f", "build/measured/calls/python")
        assert re.search(r"^calls: \d variants measured in \d cells$", output, re.MULTILINE)
    else:
        replace_in(copy / "kernels" / "calls" / "python.py", "TURNS = ", "TURNS = 1 + ")
        built = contents(copy / "build")
        assert "Measuring calls" in planned(copy)
        assert "Measuring calls" in planned(copy, "site", "grid=smoke")
        assert (contents(copy / "build"), contents(copy / "results")) == (built, files)
        succeed(copy, "measure")
    assert files.items() <= contents(copy / "results").items(), "none is changed"
    after = runs_by_variant(copy)
    for variant, known in before.items():
        assert after[variant][variant in HOST_ONLY :] == known
    assert "Measuring" not in planned(copy)


def test_missing_results_are_measured_despite_a_mark(copy: Path) -> None:
    """A run has every variant. A copy without .git has no known commit. The smoke grid writes
    under build only."""
    (copy / MARK).touch()
    shutil.rmtree(copy / "results" / "test-box")
    succeed(copy, "measure")
    (run,) = runs(copy)
    rows = [row for row in run.rows if row.variant in HOST_ONLY]
    assert {row.variant for row in rows} == {*HOST_ONLY}
    assert {(row.status, row.verified) for row in rows} == {("ok", 1)}
    assert {row.round for row in rows} == set(range(ROUNDS))
    assert {row.status for row in run.rows if row.variant == "kernel"} in ({"skipped"}, {"ok"})
    assert (run.about.commit, run.about.dirty, run.about.asked) == (None, None, [])
    assert "Measuring" not in planned(copy)
    before = outside_of_build(copy)
    succeed(copy, "measure", settings=(*SETTINGS, "grid=smoke"))
    assert outside_of_build(copy) == before
    (run,) = runs(copy, "build/smoke/results")
    assert {row.round for row in run.rows if row.variant == "python"} == {0, 1}


def test_a_site_without_its_first_page_is_published_again(tmp_path: Path) -> None:
    copy = copy_of_pipeline(tmp_path / "hotpath", alone=True)
    add_modules(copy)
    succeed(copy)
    summary = (copy / "build" / "summary.csv").read_text()
    assert "\ntest-box,calls,python,calls=100,host_time,s," in summary
    assert (copy / "build" / "refused.json").read_text().strip() == "{}"
    assert "Nothing to be done" in succeed(copy)
    (copy / "site" / "index.html").unlink()
    succeed(copy)
    assert (copy / "site" / "index.html").exists()


MACHINES = [
    {"name": "small-box"},
    {"name": "large-box", "partition": "second", "constraint": "large", "gpus": 1, "runs": 2},
]
ASKED = {"slurm_partition": "second", "constraint": "large", "gpu": 1}
DESCRIBE = f"""
include: "Snakefile"


from snakemake.iocontainers import Wildcards

wildcards = Wildcards(fromdict={{"machine": "large-box", "run": "1"}})
resources = rules.measure_machine.rule.resources
asked = {{name: resources[name]._evaluator(wildcards) for name in {[*ASKED]}}}
Path("build/asked.json").write_text(json.dumps(asked))
"""


@pytest.mark.long
def test_one_command_measures_and_publishes_every_machine(tmp_path: Path) -> None:
    """Each run on this node, as under Slurm on one that is its own."""
    copy = copy_of_pipeline(tmp_path / "hotpath", alone=True)
    (copy / "Describe.smk").write_text(DESCRIBE)
    settings = ("machines=" + yaml.safe_dump(MACHINES, default_flow_style=True, width=999).strip(),)
    succeed(copy, "--dry-run", "--snakefile", "Describe.smk", "build", settings=settings)
    assert json.loads((copy / "build" / "asked.json").read_text()) == ASKED
    succeed(copy, "summary", settings=settings)
    summary = (copy / "build" / "summary.csv").read_text()
    for machine, count in (("small-box", 1), ("large-box", 2)):
        runs = [*read_runs(copy / "results" / machine / "calls", None)]
        statuses = {row.status for run in runs for row in run.rows if row.variant == "python"}
        assert (len(runs), statuses) == (count, {"ok"})
        assert f"\n{machine},calls,python," in summary
        # Each run was built and measured in a separate tree.
        for run in range(1, count + 1):
            tree = copy / "build" / "machines" / machine / str(run)
            assert [*tree.glob("build/modules/*/calls/compiled.so")]
            assert [path.name for path in (tree / "results").iterdir()] == [machine]
    # The checkout that started Snakemake measured nothing.
    assert not (copy / "build" / "rounds").exists()
