"""A fault in the configuration is one error, before anything starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from analysis.locks import take
from tests.workflow.pipeline import SETTINGS, contents, copy_of_pipeline, snakemake, succeed


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_pipeline(tmp_path_factory.mktemp("copy") / "hotpath")


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


def test_a_checkout_that_is_in_use_is_left_alone_by_a_second_run(copy: Path) -> None:
    (copy / ".snakemake").mkdir(exist_ok=True)
    lock = take(copy / ".snakemake" / "hotpath.lock", "the first run", lambda holder: None)
    done = snakemake(copy, "build/cpu_cache.so")
    os.close(lock)
    assert done.returncode != 0
    told = "error: this checkout is in use by the first run; wait until that has ended"
    assert told in done.stdout.splitlines()
    assert "Traceback" not in done.stdout
    succeed(copy, "build/cpu_cache.so")
