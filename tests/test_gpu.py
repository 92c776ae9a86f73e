"""Which GPU is asked for, where there is none."""

from __future__ import annotations

import pynvml
import pytest

from analysis.errors import FieldError
from analysis.gpu import GpuError, open_gpu


@pytest.fixture(autouse=True)
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", fail)


def test_without_a_gpu_the_first_is_not_missed() -> None:
    with pytest.raises(GpuError, match="no GPU"), open_gpu(0):
        pass


@pytest.mark.parametrize("which", [99, "GPU-0"])
def test_without_a_gpu_any_but_the_first_is_a_mistake(which: int | str) -> None:
    told = "^config: gpu: expected 0, as there is no GPU here"
    with pytest.raises(FieldError, match=told), open_gpu(which):
        pass
