"""Host memory is out of the CPU's caches, and unchanged, before it is timed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from analysis.build.toolchain import find_toolchain
from analysis.errors import HotpathError
from analysis.measure.cpu_cache import CHUNK, LIBRARY, flusher

SOURCE = Path(__file__).parents[1] / "analysis/measure/cpu_cache.cpp"


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("modules")
    command = [find_toolchain().cxx, "-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror"]
    options = ["-fPIC", "-shared", str(SOURCE), "-o", str(folder / LIBRARY)]
    subprocess.run([*command, *options], check=True)
    return folder


@pytest.mark.parametrize("size", [1, 63, 64, 65, 4096, CHUNK, 2 * CHUNK + 1])
def test_what_is_flushed_keeps_its_bytes(modules: Path, size: int) -> None:
    whole = np.random.default_rng(size).integers(0, 256, size + 7, np.uint8)
    before = whole.copy()
    part = whole[5 : 5 + size]  # begins and ends within a line
    part += 1
    flusher(modules)([part, whole[:0]])
    assert np.array_equal(part, before[5 : 5 + size] + np.uint8(1))
    assert np.array_equal(whole[:5], before[:5])


def test_without_the_library_only_the_first_flush_of_anything_is_refused(tmp_path: Path) -> None:
    flush = flusher(tmp_path)
    flush([])
    flush([np.empty(0)])
    with pytest.raises(HotpathError, match=r"cpu_cache\.so: not built; run: snakemake"):
        flush([np.zeros(1)])
