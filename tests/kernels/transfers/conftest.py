"""The study's workload without a GPU, and made-up results."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.site.facts.study_facts import StudyFacts
from tests.kernels.transfers.fake import fake_workload
from tests.kernels.transfers.test_widgets import TRANSFERS, plausible
from tests.roots import make_inputs
from tests.synthetic import write_machine


@pytest.fixture
def workload(monkeypatch: pytest.MonkeyPatch) -> Any:
    return fake_workload(monkeypatch)


@pytest.fixture(scope="session")
def facts(tmp_path_factory: pytest.TempPathFactory) -> StudyFacts:
    """The figures of a machine that is made up, of all variants in all cases."""
    root = tmp_path_factory.mktemp("facts")
    write_machine(root / "results", "box", TRANSFERS, noise=0.01, seconds=plausible)
    return StudyFacts(make_inputs(root, {"transfers": TRANSFERS}), TRANSFERS)
