"""Inputs, resources and benchmarks of the rules."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from analysis import ROOT
from analysis.base.reading import read_yaml
from analysis.study.source import study_files
from tests.compiled import ARCH
from tests.repository import STUDIES, TOPS
from tests.synthetic import CALLS, files_of, write_machine
from tests.workflow.pipeline import SETTINGS, copy_of_pipeline, succeed

DESCRIBE = """
include: "Snakefile"


from snakemake.iocontainers import Wildcards

example = Wildcards(fromdict={"study": "calls", "variant": "compiled"})
described = {
    each.name: {
        "inputs": [str(path) for path in each.expand_input(example)[0]],
        "outputs": [str(path) for path in each.output],
        "shell": each.shellcmd,
        "benchmark": each.benchmark is not None,
        "resources": sorted(each.resources),
    }
    for each in workflow.rules
    if each.shellcmd
}
summaries = {
    study: [str(path) for path in rules.summarise_study.rule.expand_input(
        Wildcards(fromdict={"study": study}))[0]]
    for study in CONFIG.known
}
collected = {"rules": described, "summaries": summaries}
Path("build/rules.json").write_text(json.dumps(collected))
"""
"""Collects each rule with a command as it is for one variant, and for every study the inputs of its
tables."""

OF_MODULES = ("bindings", "module", "machine_code")
READERS = re.compile(r"analysis/((base|study|study/claims)/)?\w+\.py")
"""Code that reads descriptions: no input of these rules, whose parameters have the settings."""
ALWAYS = {"_cores", "_nodes", "tmpdir"}
"""Resources that Snakemake gives every rule."""
PACKAGES = {"analysis", *(top.name for top in TOPS)}


def imported(module: str, seen: set[Path]) -> Iterator[Path]:
    """The files of PACKAGES that `module` imports, and itself, as paths from ROOT."""
    base = ROOT.joinpath(*module.split("."))
    file = next((f for f in (base.with_suffix(".py"), base / "__init__.py") if f.is_file()), None)
    if file is None or file in seen:
        return
    seen.add(file)
    yield file.relative_to(ROOT)
    package = module.rpartition(".")[0]
    names = [package]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            name = f"{package}.{node.module}" if node.level else node.module
            names += [name, *(f"{name}.{alias.name}" for alias in node.names)]
    for name in names:
        if name.split(".")[0] in PACKAGES:
            yield from imported(name, seen)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pipeline with the synthetic studies, of which one is measured and one is predicted."""
    folder = copy_of_pipeline(tmp_path_factory.mktemp("copy") / "hotpath")
    description = folder / "kernels" / "strides" / "study.yaml"
    predicted = read_yaml(description)
    predicted["variants"][-1]["link"] = {"reads": "copy_engine"}
    description.write_text(yaml.safe_dump(predicted))
    elsewhere = folder / "kernels" / "strides" / "shared.h"
    elsewhere.write_text("#pragma once\n")
    bindings = folder / "kernels" / "calls" / "bindings.cpp"
    bindings.write_text(f'#include "../strides/{elsewhere.name}"\n{bindings.read_text()}')
    write_machine(folder / "results", "test-box", CALLS, rounds=1)
    return folder


@pytest.fixture(scope="module")
def described(copy: Path) -> dict[str, dict[str, Any]]:
    (copy / "build").mkdir()
    (copy / "Describe.smk").write_text(DESCRIBE)
    elsewhere = (SETTINGS[0], "machine=elsewhere")  # everything is pending there
    succeed(copy, "--dry-run", "--snakefile", "Describe.smk", settings=elsewhere)
    (copy / "Describe.smk").unlink()
    collected: dict[str, dict[str, Any]] = json.loads((copy / "build" / "rules.json").read_text())
    return collected


@pytest.fixture(scope="module")
def rules(described: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return described["rules"]


def test_every_rule_has_a_benchmark_and_resources(rules: dict[str, Any]) -> None:
    assert {"bindings", "module", "derive", "measure_pending", "summarise_study", "report"} <= set(
        rules
    )
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
            if name in OF_MODULES:
                found = {path for path in found if not READERS.fullmatch(path)}
            lacking[name] = found - set(rule["inputs"])
    assert len(lacking) >= 8
    assert {name: files for name, files in lacking.items() if files} == {}


@pytest.mark.parametrize(
    ("rule", "files"),
    [
        ("bindings", ["bindings.cpp", "operation.h"]),
        ("module", ["compiled.cpp", "bindings.cpp", "operation.h"]),
        ("derive", ["compiled.cpp", "operation.h", "study.yaml"]),
        ("measure_pending", ["python.py", "workload.py", "compiled.cpp", "study.yaml"]),
        ("measure_variant", ["workload.py", "compiled.cpp", "study.yaml"]),
        ("profile_study", ["workload.py", "kernel.cu", "study.yaml"]),
        ("summarise_study", ["python.py", "workload.py", "operation.h", "study.yaml"]),
        ("charts", ["python.py", "charts.py", "operation.h", "study.yaml"]),
        ("report", ["python.py", "charts.py", "operation.h", "study.yaml"]),
    ],
)
def test_the_files_of_a_study_that_a_rule_reads_are_among_its_inputs(
    copy: Path, rules: dict[str, Any], rule: str, files: list[str]
) -> None:
    inputs = {str(copy / path) for path in rules[rule]["inputs"]}
    assert {str(copy / "kernels" / "calls" / name) for name in files} <= inputs
    keys = str(copy / "analysis" / "study" / "keys.py")
    assert (keys in inputs) == (rule not in OF_MODULES)
    assert not any("__pycache__" in path for path in inputs)


@pytest.mark.parametrize(
    "rule", ["bindings", "module", "derive", "measure_pending", "summarise_study", "charts"]
)
def test_a_header_of_another_folder_is_among_the_inputs(
    copy: Path, rules: dict[str, Any], rule: str
) -> None:
    inputs = {(copy / path).resolve() for path in rules[rule]["inputs"]}
    assert copy / "kernels" / "strides" / "shared.h" in inputs


@pytest.mark.parametrize(("rule", "name"), [("charts", "charts"), ("derive", "tables")])
def test_imports_of_a_study_s_charts_and_tables_are_inputs_of_their_rule(
    rules: dict[str, Any], rule: str, name: str
) -> None:
    """Files in the study's folder, and those of other folders that they import, always are."""
    files, lacking = set(), {}
    for study in STUDIES.values():
        folder = study.folder.relative_to(ROOT)
        found = set(imported(".".join([*folder.parts, name]), set()))
        files |= found
        known = {str(path.relative_to(ROOT)) for path in study_files(study)}
        lacking[study.name] = set(map(str, found)) - known - set(rules[rule]["inputs"])
    assert len(files) > 10
    assert {study: paths for study, paths in lacking.items() if paths} == {}


def test_results_and_pages_are_inputs_of_the_rules_that_show_them(
    copy: Path, rules: dict[str, Any]
) -> None:
    of_calls = {str(path.relative_to(copy)) for path in copy.glob("results/test-box/calls/*.*")}
    assert len(of_calls) == 2
    for rule in ("summarise_study", "charts", "summarise", "report"):
        inputs = set(rules[rule]["inputs"])
        assert of_calls <= inputs
        assert ("results/published/copy.csv" in inputs) == (rule in ("summarise", "report"))
    assert "build/tables/calls/summary.csv" in rules["charts"]["inputs"]
    shown = {
        "analysis/site/templates/table.html",
        "docs/index.md",
        "config/config.yaml",
        "pyproject.toml",
        "build/machine_code.csv",
        "build/resources.csv",
        "build/claims.csv",
        "build/charts/calls",
        "build/charts/vega.js",
    }
    assert shown <= set(rules["report"]["inputs"])


def test_pages_are_no_outputs(rules: dict[str, Any]) -> None:
    """Snakemake deletes outputs before it runs their rule."""
    assert rules["report"]["outputs"] == ["site/.whole"]


def test_only_a_study_that_the_link_model_predicts_waits_for_its_fit(
    described: dict[str, dict[str, Any]],
) -> None:
    summaries = described["summaries"].items()
    assert {name for name, inputs in summaries if "build/links.json" in inputs} == {"strides"}


def test_a_changed_page_redraws_nothing(described: dict[str, dict[str, Any]]) -> None:
    assert not any(path.startswith("docs/") for path in described["rules"]["charts"]["inputs"])


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
    output = succeed(copy, "summary", "--dry-run")
    assert "Summarising the results of every machine" in output


def test_a_study_in_a_new_top_level_folder_is_built(tmp_path: Path) -> None:
    copy = copy_of_pipeline(tmp_path / "hotpath")
    (copy / "elsewhere").mkdir()
    (copy / "kernels" / "calls").rename(copy / "elsewhere" / "calls")
    module = Path("build", "modules", ARCH, "calls", "compiled.so")
    succeed(copy, str(module))
    assert (copy / module).exists()
