"""The study's workload without a GPU, and made-up results."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.site.facts.study_facts import StudyFacts
from tests.kernels.transfers.fake import fake_workload
from tests.kernels.transfers.test_widgets import TRANSFERS, measured_on
from tests.roots import make_inputs


@pytest.fixture
def workload(monkeypatch: pytest.MonkeyPatch) -> Any:
    return fake_workload(monkeypatch)


@pytest.fixture(scope="session")
def facts(tmp_path_factory: pytest.TempPathFactory) -> StudyFacts:
    """The figures of a made-up machine, of all variants in the default grid."""
    root = tmp_path_factory.mktemp("facts")
    measured_on(root, "box")
    return StudyFacts(make_inputs(root, {"transfers": TRANSFERS}), TRANSFERS)
