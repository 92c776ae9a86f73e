"""The pipeline on GPUs that a made-up driver reports."""

from __future__ import annotations

from pathlib import Path

import pynvml
import pytest

from tests.workflow.pipeline import SETTINGS, copy_of_pipeline, snakemake, succeed

DRIVER = f"""
import importlib.util
import sys

spec = importlib.util.spec_from_file_location("real_pynvml", {pynvml.__file__!r})
sys.modules["real_pynvml"] = real = importlib.util.module_from_spec(spec)
spec.loader.exec_module(real)
globals().update({{name: getattr(real, name) for name in dir(real) if not name.startswith("__")}})


def unsupported(*arguments):
    raise NVMLError(NVML_ERROR_NOT_SUPPORTED)


for name in [name for name in globals() if name.startswith("nvmlDevice")]:
    globals()[name] = unsupported
nvmlInit = nvmlShutdown = lambda: None
nvmlDeviceGetCount = lambda: 1
nvmlDeviceGetHandleByIndex = lambda index: "handle"
nvmlDeviceGetName = lambda handle: "Tesla V100"
"""
"""A module in front of the real one, whose GPU answers nothing else."""
OLD = "nvmlDeviceGetCudaComputeCapability = lambda handle: (7, 0)\n"
LOST = """
def nvmlDeviceGetHandleByIndex(index):
    raise NVMLError(NVML_ERROR_GPU_IS_LOST)
"""
LINE = "this GPU is sm_70: CUDA 13 cannot compile for it, nothing is measured here"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_pipeline(tmp_path_factory.mktemp("copy") / "hotpath")


def test_an_old_gpu_publishes_committed_results(copy: Path) -> None:
    (copy / "pynvml.py").write_text(DRIVER + OLD)
    printed = succeed(copy, "--dry-run", "site", settings=SETTINGS[:1])
    assert printed.splitlines().count(LINE) == 1
    assert "Building the site" in printed
    assert "Measuring" not in printed
    refused = snakemake(copy, "--dry-run", "measure", settings=SETTINGS[:1])
    assert refused.returncode != 0
    assert f"error: {LINE}" in refused.stdout.splitlines()


def test_a_lost_gpu_is_one_line(copy: Path) -> None:
    (copy / "pynvml.py").write_text(DRIVER + LOST)
    refused = snakemake(copy, "--dry-run", "measure", settings=SETTINGS[:1])
    assert refused.returncode != 0
    [line] = [line for line in refused.stdout.splitlines() if "error" in line.lower()]
    assert line == "error: GPU 0: GPU is lost"
    succeed(copy, "--dry-run", "build", settings=SETTINGS[:1])
