"""Inputs and outputs of the rules."""

import ast
import json
import os
import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from analysis import ROOT
from analysis.study.source import study_files
from tests.repository import STUDIES, TOPS
from tests.synthetic import CALLS, files_of, write_machine
from tests.workflow.pipeline import SETTINGS, copy_of_pipeline, succeed

DESCRIBE = """
include: "Snakefile"


from snakemake.iocontainers import Wildcards

values = {"variant": "compiled", "bindings": "bindings", "table": "resources"}


def described(rule, study):
    inputs = rule.expand_input(Wildcards(fromdict={"study": study, **values}))[0]
    return {"inputs": list(inputs), "outputs": list(rule.output), "shell": rule.shellcmd}


collected = {rule.name: described(rule, "calls") for rule in workflow.rules if rule.shellcmd}
Path("build/rules.json").write_text(json.dumps(collected))
"""
"""Describes each rule with a command as it is for one variant."""
OF_MODULES = ("bindings", "module", "reports")
READERS = re.compile(r"analysis/((base|study|study/claims)/)?\w+\.py")
"""Code that reads descriptions: no input of these rules, whose parameters have the settings."""
PACKAGES = {"analysis", *(top.name for top in TOPS)}
Rules = dict[str, dict[str, Any]]


def imported(module: str, seen: set[Path]) -> Iterator[str]:
    """The files of PACKAGES that `module` imports, and itself, as paths from ROOT."""
    base = ROOT.joinpath(*module.split("."))
    file = next((f for f in (base.with_suffix(".py"), base / "__init__.py") if f.is_file()), None)
    if file is None or file in seen:
        return
    seen.add(file)
    yield str(file.relative_to(ROOT))
    for name in imports(file, module.rpartition(".")[0]):
        yield from imported(name, seen)


@cache
def imports(file: Path, package: str) -> list[str]:
    """The modules of PACKAGES that a file of this package names, and the package."""
    names = [package]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            name = f"{package}.{node.module}" if node.level else node.module
            names += [name, *(f"{name}.{alias.name}" for alias in node.names)]
    return [name for name in names if name.split(".")[0] in PACKAGES]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pipeline with the synthetic studies, of which one is measured."""
    folder = copy_of_pipeline(tmp_path_factory.mktemp("copy") / "hotpath")
    (folder / "kernels" / "strides" / "shared.h").write_text("#pragma once\n")
    bindings = folder / "kernels" / "calls" / "bindings.cpp"
    bindings.write_text(f'#include "../strides/shared.h"\n{bindings.read_text()}')
    write_machine(folder / "results", "test-box", CALLS, rounds=1)
    (folder / "build").mkdir()
    (folder / "Describe.smk").write_text(DESCRIBE)
    elsewhere = (SETTINGS[0], "machine=elsewhere")  # everything is pending there
    succeed(folder, "--dry-run", "--snakefile", "Describe.smk", settings=elsewhere)
    return folder


def test_the_code_that_a_rule_runs_is_among_its_inputs(copy: Path) -> None:
    rules: Rules = json.loads((copy / "build" / "rules.json").read_text())
    lacking = {}
    for name, rule in rules.items():
        for module in re.findall(r"-m (analysis[\w.]*)", rule["shell"]):
            package = (ROOT / module.replace(".", "/")).is_dir()
            found = set(imported(f"{module}.__main__" if package else module, set()))
            if name in OF_MODULES:
                found = {path for path in found if not READERS.fullmatch(path)}
            lacking[name] = found - set(rule["inputs"])
    for study in STUDIES.values():
        folder = study.folder.relative_to(ROOT)
        found = set(imported(".".join([*folder.parts, "charts"]), set()))
        known = {str(path.relative_to(ROOT)) for path in study_files(study)}
        lacking[study.name] = found - known - set(rules["charts"]["inputs"])
    assert len(lacking) >= 8 + len(STUDIES)
    assert {name: files for name, files in lacking.items() if files} == {}


BUILT = ("kernels/calls/bindings.cpp", "kernels/calls/operation.h", "kernels/strides/shared.h")
CODE = tuple(f"kernels/calls/{name}" for name in ("python.py", "workload.py", "compiled.cpp"))
MEASURED = ("kernels/calls/study.yaml", *CODE, *BUILT)
SHOWN = ("kernels/calls/charts.py", "results/published/copy.csv", *MEASURED)
READ = {
    "bindings": BUILT,
    "module": ("kernels/calls/compiled.cpp", *BUILT),
    **dict.fromkeys(("measure_pending", "measure_variant"), MEASURED),
    "profile_study": ("kernels/calls/kernel.cu", *MEASURED),
    "summarise": ("results/published/copy.csv", *MEASURED),
    "charts": ("build/summary.csv", *SHOWN),
    "report": (
        *("analysis/site/templates/parts.html", "docs/index.md", "config/config.yaml"),
        *("pyproject.toml", "build/charts", "build/samples.parquet", *SHOWN),
        *(f"build/{name}.csv" for name in ("machine_code", "resources", "claims")),
    ),
}
"""Files that a rule reads, beside the code that it runs."""


def test_the_files_that_a_rule_reads_are_among_its_inputs(copy: Path) -> None:
    rules: Rules = json.loads((copy / "build" / "rules.json").read_text())
    results = {path.resolve() for path in copy.glob("results/test-box/calls/*.*")}
    for rule, files in READ.items():
        inputs = {(copy / path).resolve() for path in rules[rule]["inputs"]}
        assert {copy / name for name in files} <= inputs, rule
        reads = (copy / "analysis/study/keys.py" in inputs) == (rule not in OF_MODULES)
        assert reads, rule
        assert not any("__pycache__" in path.parts for path in inputs)
        if rule in ("charts", "summarise", "report"):
            assert results and results <= inputs
    # Snakemake deletes outputs before it runs their rule.
    assert rules["report"]["outputs"] == ["site/.whole"]


def test_odd_files_among_results_stop_nothing(copy: Path) -> None:
    results = copy / "results"
    write_machine(results, "cut-box", CALLS, rounds=1)
    for machine in ("{calls}", "<b>", "a\nb"):
        shutil.copytree(results / "cut-box", results / machine)
    (path,) = files_of(results, "cut-box", "calls")
    path.unlink()
    path.symlink_to("nowhere")
    (results / "cut-box" / "calls" / "{run}.csv").write_text("")
    os.mkfifo(results / "cut-box" / "calls" / "fifo.csv")
    (results / "link-box").symlink_to("test-box")
    # A study in a new top-level folder is built, too.
    (copy / "elsewhere").mkdir()
    (copy / "kernels" / "calls").rename(copy / "elsewhere" / "calls")
    bindings = copy / "elsewhere" / "calls" / "bindings.cpp"
    bindings.write_text(bindings.read_text().replace("../strides", "../../kernels/strides"))
    listed = succeed(copy, "summary", "build", "--dry-run")
    assert "\nsummarise\n" in listed and "\nmodule calls/compiled\n" in listed
