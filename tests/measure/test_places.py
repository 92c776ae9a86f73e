"""A node with several GPUs: the study of several uses free ones of a kind, all others the first."""

from __future__ import annotations

from pathlib import Path

import pynvml
import pytest

from analysis.base.gpu import open_gpus
from analysis.measure import needs
from analysis.measure.needs import in_use
from analysis.measure.places import Place, Places
from analysis.study import Study
from analysis.study.config import load_config
from analysis.toolchain import arch
from analysis.toolchain.arch import UnsupportedGpu, require_supported, resolve_arch
from analysis.toolchain.compilers import DEFAULT_ARCH
from tests.compiled import toolchain
from tests.nvml import Device, devices, fail, install
from tests.repository import STUDIES

ALONE, PEERS = STUDIES["h2d_gather"], STUDIES["peers"]


@pytest.fixture(autouse=True)
def compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "find_toolchain", lambda nvcc: toolchain())
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def places(**settings: object) -> Places:
    config = load_config(settings)
    with open_gpus(config.gpus) as gpus:
        return Places(config, gpus)


def used(place: Place, study: Study) -> tuple[str, list[int | str]]:
    """The machine and the GPUs of a study."""
    runnable = [v for v in study.variants if place.provision.unmet(v) is None]
    gpus = in_use(place.provision.gpus, runnable)
    return place.where.machine, [gpu.index for gpu in gpus]


@pytest.mark.parametrize(
    ("found", "machine", "expected"),
    [
        (devices(1), "nvidia-h200", [0]),
        (devices(2), "nvidia-h200-x2", [0, 1]),
        (devices(8), "nvidia-h200-x4", [0, 1, 2, 3]),
        (
            [Device(0), Device(1, users=[5]), Device(2, name="NVIDIA L4"), Device(3)],
            "nvidia-h200-x2",
            [0, 3],
        ),
        ([Device(0), Device(1, instances=())], "nvidia-h200", [0]),
    ],
)
def test_the_study_of_several_gpus_uses_free_ones_of_the_kind_of_the_first(
    monkeypatch: pytest.MonkeyPatch, found: list[Device], machine: str, expected: list[int]
) -> None:
    install(monkeypatch, found)
    here = places()
    assert used(here.of(PEERS), PEERS) == (machine, expected)
    assert used(here.of(ALONE), ALONE) == ("nvidia-h200", [0])
    assert here.of(ALONE).where.host == here.of(PEERS).where.host


@pytest.mark.parametrize(
    ("settings", "machine", "expected"),
    [
        ({"gpu": [0]}, "nvidia-h200", [0]),
        ({"gpu": [2, 3]}, "nvidia-h200-x2", [2, 3]),
        ({"gpu": 3}, "nvidia-h200-x4", [3, 0, 1, 2]),
        ({"gpu": "GPU-2", "machine": "my-box"}, "my-box-x4", [2, 0, 1, 3]),
        ({"gpu": [0, 1], "machine": "my-box"}, "my-box", [0, 1]),
    ],
)
def test_a_list_of_gpus_is_used_as_it_is(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, object], machine: str, expected: list[int]
) -> None:
    install(monkeypatch, devices(4))
    assert used(places(**settings).of(PEERS), PEERS) == (machine, expected)


def test_hidden_lost_and_silent_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    found = devices(4)
    install(monkeypatch, found)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,GPU-2, 3")
    assert used(places().of(PEERS), PEERS)[1] == [0, 2, 3]
    running = "nvmlDeviceGetComputeRunningProcesses"
    fail(monkeypatch, running, pynvml.NVML_ERROR_GPU_IS_LOST, found[2])
    fail(monkeypatch, running, pynvml.NVML_ERROR_NOT_SUPPORTED, found[3])
    assert used(places().of(PEERS), PEERS)[1] == [0, 3]


def test_too_few_gpus_name_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, devices(1))
    provision = places().of(PEERS).provision
    reasons = {provision.unmet(variant) for variant in PEERS.variants} - {None}
    assert "needs 4 free GPUs of one kind, got 1; gpu=[0, 1, 2, 3] would name them" in reasons


OLD = "this GPU is sm_70: CUDA 13 cannot compile for it, nothing is measured here"


def test_a_gpu_older_than_the_compiler_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, [Device(0, name="Tesla V100")])
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCudaComputeCapability", lambda device: (7, 0))
    monkeypatch.setattr(arch, "find_nvcc", lambda nvcc: toolchain().nvcc)
    assert resolve_arch("auto", [0]) == DEFAULT_ARCH
    with pytest.raises(UnsupportedGpu, match=f"^{OLD}$"):
        places()
    require_supported("sm_90", "sm_70", toolchain())  # a named architecture is taken as it is
    require_supported("auto", "sm_75", toolchain())
    monkeypatch.setattr(arch, "find_nvcc", lambda nvcc: None)
    assert resolve_arch("auto", [0]) == "sm_70"


def test_a_lost_gpu_does_not_stop_a_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, devices(1))
    fail(monkeypatch, "nvmlDeviceGetHandleByIndex", pynvml.NVML_ERROR_GPU_IS_LOST)
    assert resolve_arch("auto", [0]) == DEFAULT_ARCH
