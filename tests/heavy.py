"""Tests that compile, open a browser, run the pipeline or take seconds, as the mark `heavy` says.

A test without the mark fails where it starts a compiler, a browser or Snakemake.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from analysis import ROOT

MARK = "heavy"
TOOLS = {
    "tests.kernels.phases.modules": {"Host", "built"},
    "tests.kernels.phases.native": {"native"},
    "tests.compiled": {
        *("bindings_object", "device_code", "gpu_module", "gpu_module_file", "gpu_samples"),
        *("kept", "kernel_resources", "module", "module_file", "object_file", "program", "run"),
        "toolchain",
    },
    "tests.kernels.pinning.fake": {"module"},
    "tests.kernels.stubbed": {"stubbed"},
    "tests.workflow.pipeline": {"snakemake", "succeed"},
}
"""Functions and classes by module; a test file that imports one of them is heavy."""
FIXTURES = {"browser", "calibrated", "committed", "final", "libfabric", "modules", "ours", "site"}
"""Fixtures that make a test heavy."""
OTHERS = (
    "tests/base/test_processes.py",
    "tests/compare/test_command.py",
    "tests/compare/test_judge.py",
    "tests/compare/test_package.py",
    "tests/compare/test_page.py",
    "tests/kernels/hot_set/test_reference.py",
    "tests/kernels/peers/test_workload.py",
    "tests/kernels/pool_gather/test_workload.py",
    "tests/kernels/rdma_write/test_page.py",
    "tests/kernels/training/test_children.py",
    "tests/kernels/transfers/test_advise.py",
    "tests/kernels/transfers/test_page_tables.py",
    "tests/kernels/transfers/test_pools.py::test_the_committed_gathers",
    "tests/kernels/transfers/test_ways_table.py",
    "tests/kernels/transfers/test_widgets.py",
    "tests/kernels/translation/test_workload.py",
    "tests/kernels/unpack/test_planner.py",
    "tests/measure/test_bench.py",
    "tests/measure/test_cluster.py",
    "tests/measure/test_crashes.py",
    "tests/measure/test_journal.py",
    "tests/measure/test_plan.py",
    "tests/measure/test_round.py",
    "tests/measure/test_run.py",
    "tests/results/model/test_fit.py",
    "tests/results/model/test_translation.py::test_the_third_step_finds",
    "tests/results/store/test_committed.py",
    "tests/results/store/test_hostile.py",
    "tests/results/tables/test_links.py",
    "tests/results/tables/test_model.py",
    "tests/results/tables/test_of_study.py",
    "tests/results/tables/test_ratios.py",
    "tests/results/tables/test_repeatability.py",
    "tests/results/test_host_speed.py::test_the_next_run",
    "tests/site/charts/test_common.py",
    "tests/site/charts/test_stage.py",
    "tests/site/check/test_mutations.py",
    "tests/site/facts/test_captures.py",
    "tests/site/facts/test_comparison.py",
    "tests/site/facts/test_findings.py",
    "tests/site/facts/test_links.py",
    "tests/site/facts/test_properties.py",
    "tests/site/facts/test_rates.py",
    "tests/site/facts/test_runs.py",
    "tests/site/pages/test_basis.py",
    "tests/site/pages/test_chart_figures.py",
    "tests/site/pages/test_evidence.py",
    "tests/site/pages/test_hardware.py",
    "tests/site/pages/test_home.py",
    "tests/site/pages/test_inline.py",
    "tests/site/pages/test_model.py",
    "tests/site/pages/test_pages.py",
    "tests/site/pages/test_sentences.py",
    "tests/site/pages/test_study_pages.py",
    "tests/study/claims/test_bounds.py",
    "tests/study/claims/test_untested.py",
    "tests/study/claims/test_verdicts.py",
    "tests/study/test_loading.py::test_a_wrong_value_anywhere",
    "tests/study/test_source.py::test_coarse_tokens",
    "tests/toolchain/test_compile.py",
    "tests/toolchain/test_compilers.py",
    "tests/toolchain/test_dependencies.py",
    "tests/toolchain/test_packages.py",
    "tests/workflow/test_cluster.py",
)
"""Beginnings of the ids of other heavy tests: they take seconds or compile by themselves."""
CHARTS = "test_charts.py"
"""Such a file draws all charts of its study."""
PROGRAM = re.compile(r"(.*/)?((g|c|clang)\+\+|gcc|cc|nvcc|chromium\S*|google-chrome|snakemake)")
ASKS = {"--version", "-V", "--dryrun", "--list-gpu-arch", "-MM"}
"""Arguments with which a compiler compiles nothing."""


def mark_heavy(item: pytest.Item) -> None:
    """Add the mark to a test that is heavy."""
    imported = vars(sys.modules[item.function.__module__]).values()  # type: ignore[attr-defined]
    names = {(str(getattr(v, "__module__", "")), getattr(v, "__name__", "")) for v in imported}
    if (
        item.get_closest_marker("gpu")
        or item.nodeid.startswith(OTHERS)
        or item.path.name == CHARTS
        or FIXTURES.intersection(getattr(item, "fixturenames", ()))
        or any(
            module.startswith("playwright.") or name in TOOLS.get(module, ())
            for module, name in names
        )
    ):
        item.add_marker(MARK)


def is_all_heavy(file: Path) -> bool:
    """True if all tests of a file are heavy, by its name and its imports."""
    if file.suffix != ".py" or not file.name.startswith("test_"):
        return False
    if file.name == CHARTS or file.relative_to(ROOT).as_posix() in OTHERS:
        return True
    return any(
        isinstance(statement, ast.ImportFrom)
        and (
            str(statement.module).startswith("playwright.")
            or any(name.name in TOOLS.get(str(statement.module), ()) for name in statement.names)
        )
        for statement in ast.parse(file.read_text()).body
    )


def is_heavy(command: list[str]) -> bool:
    """True if the command compiles, opens a browser or runs the pipeline."""
    if "playwright" in command[0] or command[1:3] == ["-m", "snakemake"]:
        return True
    return bool(PROGRAM.fullmatch(command[0])) and not ASKS.intersection(command)


class _Guard:
    """The test that must start nothing heavy, if one runs."""

    test = ""

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.test and event == "subprocess.Popen":
            words = arguments[1]
            command = [str(word) for word in words] if isinstance(words, list | tuple) else [words]
            if is_heavy(list(map(str, command))):
                test, self.test = self.test, ""
                pytest.fail(f"{test} is not marked `{MARK}`, and starts {command}", pytrace=False)


_guard = _Guard()


def install_guard() -> None:
    """Watch all processes that tests start later."""
    sys.addaudithook(_guard)


@contextmanager
def guarded(item: pytest.Item) -> Iterator[None]:
    """Fail a test without the mark that starts a heavy process."""
    _guard.test = "" if item.get_closest_marker(MARK) else item.nodeid
    try:
        yield
    finally:
        _guard.test = ""
