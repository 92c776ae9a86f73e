"""Every kernel of every study, as a compiler makes it."""

from __future__ import annotations

import pytest

from analysis.study import Study, Variant
from tests.compiled import ARCH, QUICK, kernel_resources, module_file
from tests.repository import STUDIES

KERNELS = [
    (study, variant)
    for study in STUDIES.values()
    for variant in {one.path: one for one in reversed(study.variants)}.values()
    if variant.path.suffix == ".cu"
]
"""A variant of each file; those that differ in constants only would not build otherwise."""
ARCHS = [
    ARCH,
    *(pytest.param(arch, marks=pytest.mark.long) for arch in ("sm_80", "sm_120")),
    *(pytest.param(arch, marks=pytest.mark.exhaustive) for arch in ("sm_89", "sm_100")),
]
SPILLING = {"table_lru"}
"""Variants whose kernels keep more than registers hold."""


def needs(variant: Variant, arch: str) -> bool:
    """Whether the variant is for other GPUs than those of `arch`."""
    least = [int(need[3:].rstrip("a")) for need in variant.needs if need.startswith("sm_")]
    return int(arch[3:]) < max(least, default=0)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("study", "variant"), KERNELS, ids=lambda it: it.name)
def test_every_kernel_builds_for_the_architecture_without_spills(
    study: Study, variant: Variant, arch: str
) -> None:
    if needs(variant, arch):
        pytest.skip(f"needs {variant.needs}")
    kernels = kernel_resources(study, variant, arch)
    ours = [kernel for kernel in kernels if "3cub" not in kernel["kernel"]]
    assert ours, f"{variant.name}: ptxas said nothing"
    for kernel in ours:
        assert (kernel["arch"], kernel["variant"]) == (arch, variant.name)
        assert 0 < int(kernel["registers"]) <= 255
        spills = int(kernel["spill_store_bytes"]) + int(kernel["spill_load_bytes"])
        assert spills == 0 or variant.name in SPILLING


@pytest.mark.long
@pytest.mark.parametrize(("study", "variant"), KERNELS, ids=lambda it: it.name)
def test_every_module_can_be_linked(study: Study, variant: Variant) -> None:
    assert module_file(study, variant, optimisation=QUICK).exists()
