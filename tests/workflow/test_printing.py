"""Output of a run without a terminal: few lines, and each failure once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from analysis.base.gpu import GpuError, open_gpus
from tests.workflow.pipeline import SETTINGS, add_modules, copy_of_pipeline, snakemake, succeed


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = copy_of_pipeline(tmp_path_factory.mktemp("copy") / "hotpath")
    add_modules(folder)
    return folder


def test_building_reports_the_jobs_done_and_a_failure_once(copy: Path) -> None:
    printed = succeed(copy, "build")
    assert len(printed.splitlines()) < 20, printed
    assert re.search(r"^(\d+) of \1 jobs done$", printed, re.MULTILINE)
    assert "input:" not in printed

    source = copy / "kernels" / "calls" / "compiled.cpp"
    source.write_text(source.read_text() + "\ngarbage;\n")
    failed = snakemake(copy, "build")
    assert failed.returncode != 0
    assert failed.stdout.count("failed: Building calls/compiled for sm_90") == 1
    assert failed.stdout.count("does not name a type") == 1
    assert len(failed.stdout.splitlines()) < 20, failed.stdout


def test_the_log_file_keeps_everything(copy: Path) -> None:
    [*_, log] = sorted((copy / ".snakemake" / "log").glob("*.log"))
    assert "Error in rule module" in log.read_text()


def test_an_option_brings_back_snakemakes_messages(copy: Path) -> None:
    printed = succeed(copy, "--dry-run", "build", "--printshellcmds")
    assert "Reason: " in printed
    assert "-m analysis." in printed


def test_a_machine_without_a_gpu_and_a_name_is_one_line(copy: Path) -> None:
    try:
        with open_gpus([0]):
            pytest.skip("this machine has a GPU")
    except GpuError:
        printed = succeed(copy, "--dry-run", "site", settings=SETTINGS[:1])
    assert printed.count("no GPU was found and this machine has no name") == 1
