"""Invalid settings, targets and folders: one error, and nothing starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.base.locks import take
from tests.workflow.pipeline import SETTINGS, contents, copy_of_pipeline, snakemake, succeed

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
MEASURED = "build/measured"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_pipeline(tmp_path_factory.mktemp("copy") / "hotpath")


def the_error(copy: Path, *targets: str, settings: tuple[str, ...] = ()) -> str:
    """The only line about an error."""
    done = snakemake(copy, *targets, settings=(*SETTINGS, *settings))
    assert done.returncode != 0 and "Traceback" not in done.stdout
    [line] = [line for line in done.stdout.splitlines() if "error" in line.lower()]
    return line


@pytest.mark.parametrize(
    ("target", "setting", "expected"),
    [
        ("measure", "gird=smoke", "config: gird: expected one of ["),
        ("measure", "gpu=99", "config: gpu: expected "),
        ("measure", "nvcc=/no/such/nvcc", "config: nvcc: expected `auto` or the path of a"),
        ("measure", "arch=sm_20", "config: arch: expected one of ['sm_"),
        ("measure", "machine=file", "results/file: cannot be written to; use a copy that you"),
        ("mesure", "gpu=0", "target: expected one of build, measure, profile, site, summary, "),
        (f"{MEASURED}/no/python", "gpu=0", f"{MEASURED}/STUDY/VARIANT, or a file that a rule"),
        (f"{MEASURED}/calls/no", "gpu=0", "study calls: variant: expected one of ['python', "),
    ],
)
def test_a_mistake_is_one_error_and_starts_nothing(
    copy: Path, target: str, setting: str, expected: str
) -> None:
    (copy / "results" / "file").touch()
    before = contents(copy / "build") | contents(copy / "results")
    line = the_error(copy, "-f", target, settings=(setting,))
    assert line.startswith("error: ") and expected in line
    assert contents(copy / "build") | contents(copy / "results") == before


def test_a_number_of_the_settings_without_an_end_is_one_error(copy: Path) -> None:
    settings = copy / "config" / "config.yaml"
    text = settings.read_text()
    try:
        settings.write_text(text.replace("_limit_s: 600\n", f"_limit_s: {'9' * 5000}\n"))
        expected = "config: round_limit_s: expected type number, got 999"
        assert expected in the_error(copy, "measure")
    finally:
        settings.write_text(text)


def test_a_folder_that_cannot_be_written_to_is_one_error(copy: Path) -> None:
    """A file in its place stands for a file system that is mounted read-only."""
    (copy / "site").touch()
    try:
        expected = f"error: {copy / 'site'}: cannot be written to; use a copy that you"
        assert the_error(copy, "build").startswith(expected)
    finally:
        (copy / "site").unlink()


def test_building_opens_no_gpu_and_measuring_needs_no_package_of_the_report(copy: Path) -> None:
    settings = (*SETTINGS, "gpu=99", "arch=sm_90")
    succeed(copy, "build", "--dry-run", settings=settings)
    assert snakemake(copy, "measure", "--dry-run", settings=settings).returncode != 0
    (copy / "Without.smk").write_text(WITHOUT)
    succeed(copy, "measure", "--dry-run", "--snakefile", "Without.smk")


def test_a_second_run_refuses_a_checkout_in_use(copy: Path) -> None:
    (copy / ".snakemake").mkdir(exist_ok=True)
    lock = take(copy / ".snakemake" / "hotpath.lock", "the first run", lambda holder: None)
    expected = "error: this checkout is in use by the first run; wait until that has ended"
    assert the_error(copy, "build/cpu_cache.so") == expected
    lock.release()
    succeed(copy, "build/cpu_cache.so")
