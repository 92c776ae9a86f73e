"""Fixtures of tests on a GPU, and of those in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.browser import launched

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def stream() -> Iterator[int]:
    from cuda.bindings import runtime as cudart

    from analysis.measure.memory import cuda

    yield int(cuda(cudart.cudaStreamCreate()))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser
