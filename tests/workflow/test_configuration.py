"""Invalid settings, targets and folders: one error, and nothing starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.base.locks import take
from tests.workflow.pipeline import SETTINGS, contents, copy_of_pipeline, snakemake, succeed


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_pipeline(tmp_path_factory.mktemp("copy") / "hotpath")


MEASURED = "build/measured"
WITHOUT = """
import importlib.metadata
import sys

OF_REPORT = ("altair", "vl-convert-python", "pandas", "scipy", "duckdb", "markdown", "mkdocs")
installed = importlib.metadata.version


def version(name):
    if name in OF_REPORT:
        raise importlib.metadata.PackageNotFoundError(name)
    return installed(name)


importlib.metadata.version = version
sys.modules |= {name.removesuffix("-python").replace("-", "_"): None for name in OF_REPORT}


include: "Snakefile"
"""
"""Reads the rules as if the packages of the report were not installed."""


FURTHER_MISTAKES = [
    ("measure", "nvcc=/no/such/nvcc", "config: nvcc: expected `auto` or the path of a"),
    ("measure", "gpu=abc", "config: gpu: expected a whole number of at least 0, a UUID like"),
    (f"{MEASURED}/calls/rows", "gpu=0", f"target: expected one of {MEASURED}/calls/python, "),
    ("measure", "arch=sm_20", "config: arch: expected one of ['sm_"),
    ("measure", f"machine={'long' * 26}", "config: machine: expected at most 100 characters"),
    (
        "measure",
        "grids={smoke: {rounds: many}}",
        "config: grids.smoke.rounds: expected type integer, got 'many'",
    ),
    (
        "measure",
        "machines=[{name: box, gpus: -1}]",
        "config: machines.box.gpus: expected a number of at least 0, got -1",
    ),
]
"""Values that the tests of the configuration also refuse, and a variant of another kind."""


@pytest.mark.parametrize(
    ("target", "setting", "expected"),
    [
        ("measure", "gird=smoke", "config: gird: expected no such key"),
        ("measure", "gpu=99", "config: gpu: expected "),
        (
            "mesure",
            "gpu=0",
            "target: expected one of build, measure, profile, site, summary, ",
        ),
        (f"{MEASURED}/no/python", "gpu=0", f"target: expected one of {MEASURED}/calls/VARIANT, "),
        (f"{MEASURED}/calls/no", "gpu=0", f"target: expected one of {MEASURED}/calls/python, "),
        ("measure", "machine=file", "results/file: cannot be written to; use a copy that you"),
        *(pytest.param(*mistake, marks=pytest.mark.long) for mistake in FURTHER_MISTAKES),
    ],
)
def test_a_mistake_is_one_error_and_starts_nothing(
    copy: Path, target: str, setting: str, expected: str
) -> None:
    (copy / "results" / "file").touch()
    before = contents(copy / "build") | contents(copy / "results")
    done = snakemake(copy, "-f", target, settings=(*SETTINGS, setting))
    assert done.returncode != 0
    [line] = [line for line in done.stdout.splitlines() if "error" in line.lower()]
    assert line.startswith("error: ")
    assert expected in line
    assert "Traceback" not in done.stdout
    assert contents(copy / "build") | contents(copy / "results") == before


def test_a_number_of_the_settings_without_an_end_is_one_error(copy: Path) -> None:
    settings = copy / "config" / "config.yaml"
    text = settings.read_text()
    try:
        settings.write_text(
            f"{text}round_limit_s: {'9' * 5000}\n".replace("round_limit_s: 600\n", "")
        )
        done = snakemake(copy, "measure")
    finally:
        settings.write_text(text)
    (line,) = (line for line in done.stdout.splitlines() if "error" in line)
    assert "config: round_limit_s: expected type number, got 999" in line
    assert done.returncode == 1 and "Traceback" not in done.stdout


@pytest.mark.parametrize("name", ["build", pytest.param("site", marks=pytest.mark.long)])
def test_a_folder_that_cannot_be_written_to_is_one_error(copy: Path, name: str) -> None:
    """A file in its place stands for a file system that is mounted read-only."""
    away = copy / "away"
    (copy / name).mkdir(exist_ok=True)
    (copy / name).rename(away)
    (copy / name).touch()
    done = snakemake(copy, "build")
    (copy / name).unlink()
    away.rename(copy / name)
    [line] = [line for line in done.stdout.splitlines() if "error" in line.lower()]
    assert line.startswith(f"error: {copy / name}: cannot be written to; use a copy that you")
    assert done.returncode != 0 and "Traceback" not in done.stdout


def test_building_opens_no_gpu(copy: Path) -> None:
    """Measuring does, and refuses a missing one."""
    settings = (*SETTINGS, "gpu=99", "arch=sm_90")
    succeed(copy, "build", "--dry-run", settings=settings)
    assert snakemake(copy, "measure", "--dry-run", settings=settings).returncode != 0


def test_measuring_needs_no_package_of_the_report(copy: Path) -> None:
    (copy / "Without.smk").write_text(WITHOUT)
    succeed(copy, "measure", "--dry-run", "--snakefile", "Without.smk")
    (copy / "Without.smk").unlink()


def test_a_second_run_refuses_a_checkout_in_use(copy: Path) -> None:
    (copy / ".snakemake").mkdir(exist_ok=True)
    lock = take(copy / ".snakemake" / "hotpath.lock", "the first run", lambda holder: None)
    done = snakemake(copy, "build/cpu_cache.so")
    lock.release()
    assert done.returncode != 0
    message = "error: this checkout is in use by the first run; wait until that has ended"
    assert message in done.stdout.splitlines()
    assert "Traceback" not in done.stdout
    succeed(copy, "build/cpu_cache.so")
