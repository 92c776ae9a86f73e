"""Selection of GPUs, and errors in it."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pynvml
import pytest

from analysis.base.errors import FieldError
from analysis.base.gpu import NoGpu, open_gpus, show_only
from tests.nvml import Device, devices, install


@pytest.mark.parametrize(
    ("which", "message"),
    [
        ([0], "no GPU: "),
        ([99], "config: gpu: expected 0, as there is no GPU here.*, got 99$"),
        ([0, "GPU-0"], r"config: gpu: expected 0, as there is no GPU here.*, got \[0, 'GPU-0'\]$"),
    ],
)
def test_without_a_gpu_the_first_is_not_missed(
    monkeypatch: pytest.MonkeyPatch, which: Sequence[int | str], message: str
) -> None:
    def fail() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", fail)
    kind = NoGpu if which == [0] else FieldError
    with pytest.raises(kind, match=f"^{message}"), open_gpus(which):
        pass


def test_gpus_come_in_the_order_in_which_they_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch, devices(3))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with open_gpus([2, "GPU-0"]) as gpus:
        assert [(gpu.index, gpu.arch) for gpu in gpus] == [(2, "sm_90"), (0, "sm_90")]
        show_only(gpus)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-2,GPU-0"


@pytest.mark.parametrize(
    ("which", "message"),
    [
        ([0, 2], "expected an index below 2 or a UUID, got 2"),
        ([1, "GPU-1"], r"expected GPUs that differ from each other, got \[1, 'GPU-1'\]"),
        ([0, 1], r"expected GPUs of one kind, got \['NVIDIA H200', 'NVIDIA L4'\]"),
    ],
)
def test_gpus_that_cannot_be_measured_together_are_rejected(
    monkeypatch: pytest.MonkeyPatch, which: Sequence[int | str], message: str
) -> None:
    install(monkeypatch, [Device(0), Device(1, name="NVIDIA L4")])
    with pytest.raises(FieldError, match=f"^config: gpu: {message}$"), open_gpus(which):
        pass
