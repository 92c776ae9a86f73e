"""Fixtures of tests on a GPU, and without one."""

from collections.abc import Iterator

import pytest

from tests.kernels.cuda import fake as fake


@pytest.fixture(scope="session")
def stream() -> Iterator[int]:
    from cuda.bindings import runtime as cudart

    from analysis.measure.memory import cuda

    yield int(cuda(cudart.cudaStreamCreate()))
