"""CPU time and memory that a process may use, in made-up control groups, and the choice of GPUs."""

import os
from collections.abc import Sequence
from pathlib import Path

import pynvml
import pytest

from analysis.base.errors import HotpathError
from analysis.base.gpu import open_gpus, show_only
from analysis.base.limits import allowed_cores, cpu_quota, parse_cpu_list, throttled_periods
from tests.limited import QUOTAS
from tests.nvml import Device, fail, install

ALL = len(os.sched_getaffinity(0))


@pytest.mark.parametrize("name", QUOTAS)
def test_the_least_quota_counts(tmp_path: Path, name: str) -> None:
    assert (cpu_quota(tmp_path), throttled_periods(tmp_path)) == (None, None)
    quota, throttled, system = QUOTAS[name]
    system.write(tmp_path)
    assert (cpu_quota(tmp_path), throttled_periods(tmp_path)) == (quota, throttled)
    assert allowed_cores(tmp_path) == (ALL if quota is None else max(1, min(ALL, int(quota))))
    lists = {"0-3,8": [0, 1, 2, 3, 8], "4,36\n": [4, 36], "7-7": [7], "\n": []}
    assert {text: parse_cpu_list(text) for text in lists} == lists


@pytest.mark.parametrize(
    ("has_driver", "which", "message"),
    [
        (False, [0], "no GPU: "),
        (False, [99], r"config: gpu: expected 0, as there is no GPU here.*, got \[99\]$"),
        (True, [0, 9], "config: gpu: expected the index or UUID of a GPU, got 9"),
        (True, [1, "GPU-1"], r"config: gpu: expected GPUs that differ from each other, got \["),
        (True, [0, 1], r"config: gpu: expected GPUs of one kind, got \['NVIDIA H200', 'NVIDIA L4'"),
        (True, [3], "GPU 3: MIG is on, and only whole GPUs are measured"),
    ],
)
def test_gpus_are_opened_in_their_order_or_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, has_driver: bool, which: Sequence[int | str], message: str
) -> None:
    found = [Device(0), Device(1, name="NVIDIA L4"), Device(2), Device(3, is_divided=True)]
    install(monkeypatch, found)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with open_gpus([2, "GPU-0"]) as gpus:
        assert [(gpu.index, gpu.arch) for gpu in gpus] == [(2, "sm_90"), (0, "sm_90")]
        show_only(gpus)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-2,GPU-0"
    if not has_driver:
        fail(monkeypatch, "nvmlInit", pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
    with pytest.raises(HotpathError, match=f"^{message}"), open_gpus(which):
        pass
