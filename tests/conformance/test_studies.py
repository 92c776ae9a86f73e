"""Every study's kernels as a compiler makes them, and every key that its description defines."""

import re
from pathlib import Path

import pytest

from analysis.base.gpu import Gpu
from analysis.measure.plan import Place
from analysis.study import Study, Variant, parse_case
from analysis.study.source import source_files
from tests.compiled import ARCH, kernel_resources
from tests.conformance.results import TIMES
from tests.repository import STUDIES

ARCHS = [
    ARCH,
    *(pytest.param(arch, marks=pytest.mark.long) for arch in ("sm_80", "sm_120")),
    *(pytest.param(arch, marks=pytest.mark.exhaustive) for arch in ("sm_89", "sm_100")),
]
SPILLING = {"table_lru"}
"""Variants whose kernels keep more than registers hold."""
GPU = Gpu(handle=None, name="", uuid="", index=0, arch="sm_90", pci_bus_id="")


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(
    ("study", "variant"),
    [
        (study, variant)
        for study in STUDIES.values()
        # A variant of each file; those that differ in constants only would not build otherwise.
        for variant in {one.path: one for one in reversed(study.variants)}.values()
        if variant.path.suffix == ".cu"
    ],
    ids=lambda it: it.name,
)
def test_every_kernel_builds_without_spills(study: Study, variant: Variant, arch: str) -> None:
    least = [int(need[3:].rstrip("a")) for need in variant.needs if need.startswith("sm_")]
    if int(arch[3:]) < max(least, default=0):
        pytest.skip(f"needs {variant.needs}")
    kernels = kernel_resources(study, variant, arch)
    ours = [kernel for kernel in kernels if "3cub" not in kernel["kernel"]]
    assert ours, f"{variant.name}: ptxas said nothing"
    for kernel in ours:
        assert kernel["arch"] == arch
        assert 0 < int(kernel["registers"]) <= 255
        spills = int(kernel["spill_store_bytes"]) + int(kernel["spill_load_bytes"])
        assert spills == 0 or variant.name in SPILLING


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.name)
def test_every_key_is_used_and_every_case_and_need_is_known(study: Study) -> None:
    """Keys are constants, options, metrics and keys of cases; sources of the study use them."""
    files = {file for variant in study.variants for file in source_files(study, variant)}
    code = "\n".join(path.read_text() for path in {*files, *study.folder.glob("*.py")})
    names = {name for one in study.variants for name in (*one.constants, *one.options)}
    names |= {*study.metrics, *study.case_keys} - {*TIMES}
    described = (study.folder / "study.yaml").read_text()

    def is_used(name: str) -> bool:
        if name in study.metrics:  # code may compose it of its words
            return all(word in code for word in name.split("_"))
        is_read = any(text in code for text in (f'"{name}"', f"_{name}", name.upper()))
        return is_read or len(re.findall(rf"\b{name}\b", described)) > 1  # by an expression

    assert [name for name in sorted(names) if not is_used(name)] == []
    for variant in study.variants:
        assert all(parse_case(case.id) == case.values for case in variant.cases)
        assert not variant.on_gpu or Place(Path(), "box").unmet(variant)
        reason = Place(Path(), "box", gpus=[GPU], cuda="13.0").unmet(variant)
        assert reason is None or reason.strip()
