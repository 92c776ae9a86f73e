"""Needs of a variant: met by the machine, or a reason."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from analysis.base.errors import FieldError
from analysis.base.gpu import Gpu
from analysis.measure.needs import Provision, in_use
from analysis.study import Variant
from analysis.study.keys import PACKAGE_NEEDS
from analysis.toolchain.packages import PACKAGES
from tests.study.described import description, load


def provision(arch: str | None, cuda: str | None = "13.0") -> Provision:
    return Provision([Gpu(None, "", "", 0, arch, "")] if arch else [], cuda)


def variant_with(folder: Path, need: str) -> Variant:
    data = description()
    data["variants"][0]["needs"] = [need]
    return load(folder / "copy", data).variant("first")


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
def test_need_is_met_or_has_a_reason(
    tmp_path: Path, need: str, arch: str | None, cuda: str | None, reason: str | None
) -> None:
    variant = variant_with(tmp_path, need)
    assert provision(arch, cuda).unmet(variant) == reason


@pytest.mark.parametrize(
    ("need", "module", "reason"),
    [
        ("torch", "torch", "torch is not installed"),
        ("rmm", "librmm", "RMM is not installed"),
    ],
)
def test_package_is_available_if_python_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, need: str, module: str, reason: str
) -> None:
    variant = variant_with(tmp_path, need)
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    assert provision("sm_90").unmet(variant) == reason
    monkeypatch.delitem(sys.modules, module)
    (tmp_path / f"{module}.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert provision("sm_90").unmet(variant) is None


@pytest.mark.parametrize(
    "need",
    [
        *("cuda", "sm_ninety", "gpus", "gpuu", "cuda>=13", "rocm", "peers: two", "", "gpu "),
        *({"peers": 1}, {"peers": 65}, {"peers": 10**17}, {"peers": 2, "gpu": 1}, 7, None),
    ],
)
def test_unknown_need_is_an_error_of_the_study(tmp_path: Path, need: object) -> None:
    data = description()
    data["variants"][0]["needs"] = [need]
    with pytest.raises(FieldError) as caught:
        load(tmp_path / "copy", data)
    assert caught.value.field == "copy/study.yaml: variants.first.needs.0"
    expected = "gpu, sm_<NN>, cuda>=<X.Y>, torch, rmm, managed, libfabric or peers: <2 to 64>"
    assert f": expected {expected}, got " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_needs_of_packages_are_those_that_are_described() -> None:
    assert {*PACKAGE_NEEDS} == {*PACKAGES}


@pytest.mark.parametrize(
    ("gpus", "apart", "reason"),
    [
        (0, (), "no GPU"),
        (1, (), "needs 2 free GPUs of one kind, got 1; gpu=[0, 1] would name them"),
        (2, (), None),
        (2, ((0, 1),), "GPU 4 and GPU 5 cannot access each other's memory"),
        (3, ((0, 2), (1, 2)), None),  # the third is not used
    ],
)
def test_peers_need_gpus_that_can_access_each_other(
    tmp_path: Path, gpus: int, apart: tuple[tuple[int, int], ...], reason: str | None
) -> None:
    data = description()
    data["variants"][-1]["needs"] = ["gpu", {"peers": 2}]
    study = load(tmp_path / "copy", data)
    variant = study.variant("kernel")
    found = [Gpu(None, "", f"GPU-{n}", 4 + n, "sm_90", "") for n in range(gpus)]
    here = Provision(found, "13.0", apart=apart)
    assert here.unmet(variant) == reason
    assert in_use(found, [variant, study.variant("first")]) == tuple(found[:2])
    assert in_use(found, [study.variant("first")]) == in_use(found, []) == tuple(found[:1])
