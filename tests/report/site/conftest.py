"""The site of this repository, over made-up results of all its studies."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.study import discover
from tests.roots import build, copy_of_repository
from tests.synthetic import write_machine


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One machine has measured all of its studies, another a few."""
    root = copy_of_repository(tmp_path_factory.mktemp("site"))
    for study in discover(root).values():
        write_machine(root / "results", "box", study, rounds=4, grid="default")
        if study.name in ("h2d_gather", "method"):
            write_machine(root / "results", "other-box", study, rounds=4, grid="default")
    return build(root)
