"""Every key that a study's description defines is used by its code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from analysis.base.gpu import Gpu
from analysis.measure.places import Place
from analysis.study import Study, parse_case
from analysis.study.source import source_files
from tests.conformance.results import TIMES
from tests.repository import STUDIES

GPU = Gpu(handle=None, name="", uuid="", index=0, arch="sm_90", pci_bus_id="")


def code_of(study: Study) -> str:
    """All sources that the study's variants include or import, and all that its pages do."""
    files = {file for variant in study.variants for file in source_files(study, variant)}
    return "\n".join(path.read_text() for path in {*files, *study.folder.glob("*.py")})


def names_of(study: Study) -> set[str]:
    """Constants, options, metrics and keys of cases."""
    constants = {name for variant in study.variants for name in variant.constants}
    options = {name for variant in study.variants for name in variant.options}
    return {*constants, *options, *study.metrics, *study.case_keys} - {*TIMES}


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.name)
def test_every_key_is_used(study: Study) -> None:
    code = code_of(study)
    described = (study.folder / "study.yaml").read_text()

    def is_used(name: str) -> bool:
        if name in study.metrics:  # code may compose it of its words
            return all(word in code for word in name.split("_"))
        is_read = any(text in code for text in (f'"{name}"', f"_{name}", name.upper()))
        return is_read or len(re.findall(rf"\b{name}\b", described)) > 1  # by an expression

    assert [name for name in sorted(names_of(study)) if not is_used(name)] == []


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.name)
def test_every_case_parses_back_and_every_need_is_known(study: Study) -> None:
    for variant in study.variants:
        assert all(parse_case(case.id) == case.values for case in variant.cases)
        assert not variant.on_gpu or Place(Path(), "box").unmet(variant)
        reason = Place(Path(), "box", gpus=[GPU], cuda="13.0").unmet(variant)
        assert reason is None or reason.strip()
