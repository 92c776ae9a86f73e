"""What a variant needs of a machine: met, or the reason told."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.errors import FieldError
from analysis.gpu import Gpu
from analysis.measure.needs import Provision
from tests.study.described import description, load


def provision(arch: str | None, cuda: str | None = "13.0") -> Provision:
    gpu = arch and Gpu(handle=None, name="", uuid="", index=0, arch=arch, pci_bus_id="")
    return Provision(gpu or None, cuda)


@pytest.mark.parametrize(
    ("need", "arch", "cuda", "reason"),
    [
        ("gpu", "sm_90", "13.0", None),
        ("gpu", None, "13.0", "no GPU"),
        ("sm_90", None, "13.0", "no GPU"),
        ("sm_90", "sm_90", "13.0", None),
        ("sm_90a", "sm_100", "13.0", None),
        ("sm_90", "sm_89", "13.0", "needs sm_90, the GPU is sm_89"),
        ("cuda>=12.8", None, "12.8", None),
        ("cuda>=12.8", None, "12.10", None),
        ("cuda>=12.10", None, "12.9", "needs CUDA 12.10, modules are built with 12.9"),
        ("cuda>=12.8", None, None, "needs CUDA 12.8, modules are built with None"),
    ],
)
def test_a_need_is_met_or_its_reason_is_told(
    tmp_path: Path, need: str, arch: str | None, cuda: str | None, reason: str | None
) -> None:
    data = description()
    data["variants"][0]["needs"] = [need]
    variant = load(tmp_path / "copy", data).variant("first")
    assert provision(arch, cuda).unmet(variant) == reason


@pytest.mark.parametrize("need", ["cuda", "sm_ninety", "gpus", "cuda>=13", "rocm"])
def test_a_need_nobody_knows_is_an_error(tmp_path: Path, need: str) -> None:
    data = description()
    data["variants"][0]["needs"] = [need]
    variant = load(tmp_path / "copy", data).variant("first")
    with pytest.raises(FieldError) as caught:
        provision("sm_90").unmet(variant)
    assert caught.value.field == "variant first: needs"
    assert str(caught.value).endswith(f"got {need!r}")
