"""The pipeline as a person runs it, in a copy of the repository: what it measures, and what not."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from analysis import ROOT
from analysis.schema import read_yaml
from analysis.store.results import load_variant
from analysis.store.samples import checksum
from tests import synthetic
from tests.synthetic import CALLS

HOST_ONLY = ("python", "compiled")
ROUNDS, SAMPLES = 3, 2
SETTINGS = ('studies=["calls"]', "machine=test-box")
OTHERS = ("kernels/", "allocator/", "docs/", "results/", "tests/")
"""What the copy has others of, or none."""


def snakemake(
    copy: Path, *targets: str, settings: tuple[str, ...] = SETTINGS
) -> subprocess.CompletedProcess[str]:
    """Run Snakemake in the copy; its output and what its jobs print come together."""
    return subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "2", *targets, "--config", *settings],
        cwd=copy,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def succeed(copy: Path, *targets: str, settings: tuple[str, ...] = SETTINGS) -> str:
    done = snakemake(copy, *targets, settings=settings)
    assert done.returncode == 0, done.stdout
    return done.stdout


def planned(copy: Path) -> set[str]:
    """The rules that `measure` would run, but the target itself, which runs nothing."""
    said = succeed(copy, "--dry-run", "measure")
    counted = said.partition("Job stats:")[2].partition("total")[0]
    return set(re.findall(r"^(\w+) +\d+$", counted, re.MULTILINE)) - {"measure"}


def runs(copy: Path, variant: str) -> list[str]:
    """The runs of a variant on disk, newest first."""
    path = copy / "results" / "test-box" / "calls" / f"{variant}.csv"
    return list(load_variant(path).run_provenance())


def contents(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


DESCRIBE = """
include: "Snakefile"


from snakemake.iocontainers import Wildcards

example = Wildcards(fromdict={"study": "calls", "variant": "compiled"})
described = {
    each.name: {
        "inputs": [str(path) for path in each.expand_input(example)[0]],
        "shell": each.shellcmd,
        "benchmark": each.benchmark is not None,
        "resources": sorted(each.resources),
    }
    for each in workflow.rules
    if each.shellcmd
}
Path("build/rules.json").write_text(json.dumps(described))
"""
"""What each rule that runs something says of itself, for a variant of one study."""

ALWAYS = {"_cores", "_nodes", "tmpdir"}
"""Resources that Snakemake gives every rule."""


def imported(module: str, seen: set[Path]) -> Iterator[Path]:
    """The files of the package that `module` stands on, its own among them, as paths from ROOT."""
    base = ROOT.joinpath(*module.split("."))
    file = next((f for f in (base.with_suffix(".py"), base / "__init__.py") if f.is_file()), None)
    if file is None or file in seen:
        return
    seen.add(file)
    yield file.relative_to(ROOT)
    names = [module.rpartition(".")[0]]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    for name in names:
        if name.split(".")[0] == "analysis":
            yield from imported(name, seen)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pipeline with the synthetic studies, one of them measured. Each test leaves nothing to
    measure."""
    folder = tmp_path_factory.mktemp("copy") / "hotpath"
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file() and not name.startswith(OTHERS):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    shutil.copytree(synthetic.ROOT / "kernels", folder / "kernels")
    config = read_yaml(folder / "config" / "config.yaml")
    config["grids"]["default"] |= {"rounds": ROUNDS, "samples": SAMPLES}
    (folder / "config" / "config.yaml").write_text(yaml.safe_dump(config))
    succeed(folder, "measure")
    return folder


@pytest.fixture(scope="module")
def rules(copy: Path) -> dict[str, Any]:
    (copy / "Describe.smk").write_text(DESCRIBE)
    succeed(copy, "--dry-run", "--snakefile", "Describe.smk")
    (copy / "Describe.smk").unlink()
    described: dict[str, Any] = json.loads((copy / "build" / "rules.json").read_text())
    return described


def test_every_rule_is_benchmarked_and_says_what_it_takes(rules: dict[str, Any]) -> None:
    assert {"bindings", "module", "derive", "measure_study", "summarise", "report"} <= set(rules)
    assert [name for name, rule in rules.items() if not rule["benchmark"]] == []
    assert [name for name, rule in rules.items() if not set(rule["resources"]) - ALWAYS] == []


def test_the_code_that_a_rule_runs_is_among_its_inputs(rules: dict[str, Any]) -> None:
    lacking = {}
    for name, rule in rules.items():
        for module in re.findall(r"-m (analysis[\w.]*)", rule["shell"]):
            package = (ROOT / module.replace(".", "/")).is_dir()
            runs = f"{module}.__main__" if package else module
            found = {str(path) for path in imported(runs, set())}
            assert len(found) > 2, found
            lacking[name] = found - set(rule["inputs"])
    assert len(lacking) >= 8
    assert {name: files for name, files in lacking.items() if files} == {}


@pytest.mark.parametrize(
    ("rule", "files"),
    [
        ("bindings", ["bindings.cpp", "operation.h", "study.yaml"]),
        ("module", ["empty_call.cpp", "bindings.cpp", "operation.h", "study.yaml"]),
        ("derive", ["empty_call.cpp", "operation.h", "study.yaml"]),
        ("measure_study", ["clock.py", "workload.py", "empty_call.cpp", "study.yaml"]),
        ("measure_variant", ["workload.py", "empty_call.cpp", "study.yaml"]),
        ("profile_study", ["workload.py", "empty_kernel.cu", "study.yaml"]),
        ("summarise", ["clock.py", "workload.py", "operation.h", "study.yaml"]),
        ("report", ["clock.py", "charts.py", "operation.h", "study.yaml"]),
    ],
)
def test_the_files_of_a_study_that_a_rule_reads_are_among_its_inputs(
    copy: Path, rules: dict[str, Any], rule: str, files: list[str]
) -> None:
    inputs = {str(copy / path) for path in rules[rule]["inputs"]}
    assert {str(copy / "kernels" / "method" / name) for name in files} <= inputs
    assert str(copy / "workflow" / "schemas" / "study.schema.yaml") in inputs
    assert not any("__pycache__" in path for path in inputs)


def test_results_and_pages_are_inputs_of_what_shows_them(copy: Path, rules: dict[str, Any]) -> None:
    for rule in ("summarise", "report"):
        inputs = set(rules[rule]["inputs"])
        assert {"results/test-box/machine.json", "results/published/h2d_gather.csv"} <= inputs
        assert {f"results/test-box/method/clock{suffix}" for suffix in (".csv", ".json")} <= inputs
    shown = {
        "docs/index.md",
        "config/config.yaml",
        "pyproject.toml",
        "build/machine_code.csv",
        "build/resources.csv",
        "build/claims.csv",
    }
    assert shown <= set(rules["report"]["inputs"])


def test_measuring_writes_samples_with_their_provenance(copy: Path) -> None:
    folder = copy / "results" / "test-box"
    assert (folder / "machine.json").exists()
    for variant in HOST_ONLY:
        loaded = load_variant(folder / "calls" / f"{variant}.csv")
        assert {sample.status for sample in loaded.samples} == {"ok"}
        assert {sample.verified for sample in loaded.samples} == {1}
        assert {sample.round for sample in loaded.samples} == set(range(ROUNDS))
        assert loaded.provenance["samples_sha256"] == checksum(folder / "calls" / f"{variant}.csv")
        assert "analysis.measure calls" in loaded.provenance["command"]
    # A copy of files is no checkout: its commit is not known, and not made up.
    assert loaded.provenance["commit"] is None
    assert loaded.provenance["dirty"] is None


def test_every_variant_has_a_file_even_where_it_cannot_run(copy: Path) -> None:
    path = copy / "results" / "test-box" / "calls" / "kernel.csv"
    assert {s.status for s in load_variant(path).samples} in ({"skipped"}, {"ok"})


def test_what_is_measured_is_not_measured_again(copy: Path) -> None:
    before = contents(copy / "results")
    assert planned(copy) == set()
    assert "Measuring" not in succeed(copy, "measure")
    assert contents(copy / "results") == before


def test_comments_and_file_times_measure_nothing(copy: Path) -> None:
    before = contents(copy / "results")
    edit(
        copy / "kernels" / "calls" / "python.py",
        "TURNS = 1",
        "# Enough.\nTURNS = 1",
    )
    edit(copy / "kernels" / "calls" / "bindings.cpp", "// Python's way in", "// The way in")
    edit(copy / "kernels" / "calls" / "study.yaml", "title: Calls that", "title: What calls that")
    now = time.time_ns()
    for path in copy.rglob("*"):
        if path.is_file() and ".snakemake" not in path.parts:
            os.utime(path, ns=(now, now))
    assert planned(copy) == set()
    assert contents(copy / "results") == before


def test_a_module_is_built_anew_by_its_settings_and_not_by_what_else_is_said(copy: Path) -> None:
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


def test_an_edited_variant_is_measured_again_and_no_other(copy: Path) -> None:
    before = {variant: runs(copy, variant) for variant in HOST_ONLY}
    edit(copy / "kernels" / "calls" / "python.py", "TURNS = 1", "TURNS = 2")
    assert planned(copy) == {"measure_study"}
    succeed(copy, "measure")
    assert runs(copy, "python")[1:] == before["python"]
    assert runs(copy, "compiled") == before["compiled"]
    assert planned(copy) == set()


def test_a_variant_asked_for_by_name_is_measured_anew(copy: Path) -> None:
    before = {variant: runs(copy, variant) for variant in HOST_ONLY}
    visits = sum(case.visits for case in CALLS.variant("python").cases)
    said = succeed(copy, "-f", "build/measured/calls/python")
    assert "Measuring calls/python again" in said
    assert f"calls/python: {ROUNDS * SAMPLES * visits} samples" in said
    assert runs(copy, "python")[1:] == before["python"]
    assert runs(copy, "compiled") == before["compiled"]
    assert planned(copy) == set()


def test_missing_results_are_measured_even_where_a_marker_says_done(copy: Path) -> None:
    assert (copy / "build" / "measured" / "calls.done").exists()
    path = copy / "results" / "test-box" / "calls" / "python.csv"
    path.unlink()
    path.with_suffix(".json").unlink()
    succeed(copy, "measure")
    assert len(runs(copy, "python")) == 1
    assert planned(copy) == set()


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("gird=smoke", "config: expected one of the keys"),
        ("machine=published", "config: machine: expected anything but 'published'"),
        ('studies=["call"]', "config: studies: expected one of ['"),
        ("nvcc=/no/such/nvcc", "config: nvcc: expected `auto` or the path of a compiler"),
    ],
)
def test_a_fault_in_the_configuration_is_one_error_and_starts_nothing(
    copy: Path, setting: str, told: str
) -> None:
    before = contents(copy / "build") | contents(copy / "results")
    done = snakemake(copy, "measure", settings=(*SETTINGS, setting))
    assert done.returncode != 0
    assert done.stdout.count("expected") == 1
    assert told in done.stdout
    assert "Traceback" not in done.stdout
    assert contents(copy / "build") | contents(copy / "results") == before


def test_the_smoke_grid_writes_under_build_only(copy: Path) -> None:
    def outside() -> dict[str, str]:
        return {
            name: digest
            for name, digest in contents(copy).items()
            if not name.startswith(("build/", ".snakemake/")) and "__pycache__" not in name
        }

    before, measured = outside(), contents(copy / "build" / "measured")
    succeed(copy, "measure", settings=(*SETTINGS, "grid=smoke"))
    assert outside() == before
    assert contents(copy / "build" / "measured") == measured
    path = copy / "build" / "smoke" / "results" / "test-box" / "calls" / "python.csv"
    assert {sample.round for sample in load_variant(path).samples} == {0, 1}


def test_the_summary_follows_from_what_is_measured(copy: Path) -> None:
    succeed(copy, "summary")
    lines = (copy / "build" / "summary.csv").read_text().splitlines()
    assert any(line.startswith("test-box,calls,python,calls=100,host_time,s,") for line in lines)
    assert (copy / "build" / "refused.json").read_text().strip() == "{}"
