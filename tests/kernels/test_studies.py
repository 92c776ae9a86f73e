"""Properties of every study of the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.base.gpu import Gpu
from analysis.measure.places import Place
from analysis.study import Study, parse_case
from tests.repository import STUDIES

GPU = Gpu(handle=None, name="", uuid="", index=0, arch="sm_90", pci_bus_id="")


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.name)
def test_every_case_of_the_repository_parses_back(study: Study) -> None:
    for variant in study.variants:
        assert all(parse_case(case.id) == case.values for case in variant.cases)


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.name)
def test_every_need_of_the_repository_is_known(study: Study) -> None:
    assert all(Place(Path(), "box").unmet(variant) for variant in study.variants if variant.on_gpu)
    for variant in study.variants:
        reason = Place(Path(), "box", gpus=[GPU], cuda="13.0").unmet(variant)
        assert reason is None or reason.strip()
