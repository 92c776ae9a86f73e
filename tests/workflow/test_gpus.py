"""The pipeline on GPUs that a made-up driver reports."""

from __future__ import annotations

from pathlib import Path

import pynvml
import pytest

from tests.editing import replace_in
from tests.workflow.pipeline import SETTINGS, copy_of_pipeline, snakemake, succeed

DRIVER = f"""
import importlib.util
import sys
from types import SimpleNamespace

spec = importlib.util.spec_from_file_location("real_pynvml", {pynvml.__file__!r})
sys.modules["real_pynvml"] = real = importlib.util.module_from_spec(spec)
spec.loader.exec_module(real)
globals().update({{name: getattr(real, name) for name in dir(real) if not name.startswith("__")}})


def unsupported(*arguments):
    raise NVMLError(NVML_ERROR_NOT_SUPPORTED)


for name in [name for name in globals() if name.startswith("nvmlDevice")]:
    globals()[name] = unsupported
nvmlInit = nvmlShutdown = lambda: None
nvmlDeviceGetCount = lambda: 4
nvmlDeviceGetHandleByIndex = lambda index: f"GPU {{index}}"
nvmlDeviceGetHandleByUUID = nvmlDeviceGetUUID = lambda name: name
nvmlDeviceGetPciInfo = lambda handle: SimpleNamespace(busId=f"00000000:0{{handle[-1]}}:00.0")
nvmlDeviceGetName = lambda handle: "Tesla V100"
"""
"""A module in front of the real one, whose GPUs answer nothing else."""
NEW = "nvmlDeviceGetCudaComputeCapability = lambda handle: (9, 0)\n"
OLD = "nvmlDeviceGetCudaComputeCapability = lambda handle: (7, 0)\n"
LOST = """
def nvmlDeviceGetHandleByIndex(index):
    raise NVMLError(NVML_ERROR_GPU_IS_LOST)
"""
LINE = "this GPU is sm_70: CUDA 13 cannot compile for it, nothing is measured here"
ANY_MACHINE = SETTINGS[:1]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_pipeline(tmp_path_factory.mktemp("copy") / "hotpath")


def test_an_old_gpu_publishes_committed_results(copy: Path) -> None:
    (copy / "pynvml.py").write_text(DRIVER + OLD)
    printed = succeed(copy, "--dry-run", "site", settings=ANY_MACHINE)
    assert printed.splitlines().count(LINE) == 1
    assert "\nreport\n" in printed
    assert "Measuring" not in printed
    refused = snakemake(copy, "--dry-run", "measure", settings=ANY_MACHINE)
    assert refused.returncode != 0
    assert f"error: {LINE}" in refused.stdout.splitlines()


def test_a_lost_gpu_is_one_line(copy: Path) -> None:
    (copy / "pynvml.py").write_text(DRIVER + LOST)
    refused = snakemake(copy, "--dry-run", "measure", settings=ANY_MACHINE)
    assert refused.returncode != 0
    [line] = [line for line in refused.stdout.splitlines() if "error" in line.lower()]
    assert line == "error: GPU 0: GPU is lost"
    succeed(copy, "--dry-run", "build", settings=ANY_MACHINE)


def test_a_machine_without_a_gpu_and_a_name_measures_nothing_for_a_site(copy: Path) -> None:
    (copy / "pynvml.py").write_text(f"{DRIVER}nvmlDeviceGetCount = lambda: 0\n")
    printed = succeed(copy, "--dry-run", "site", settings=ANY_MACHINE)
    assert printed.count("no GPU was found and this machine has no name") == 1
    assert "Measuring" not in printed


def test_a_node_with_several_gpus_needs_no_setting(copy: Path) -> None:
    (copy / "pynvml.py").write_text(DRIVER + NEW)
    study = copy / "kernels" / "calls" / "study.yaml"
    replace_in(study, "needs: [gpu]", "needs: [gpu, peers: 3]")
    printed = succeed(copy, "--dry-run", "measure", settings=ANY_MACHINE)
    assert "module calls/kernel" in printed
    assert "Measuring calls" in printed
