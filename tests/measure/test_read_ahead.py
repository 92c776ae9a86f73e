"""Reading ahead what measuring imports."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from analysis.measure import read_ahead


def test_libraries_of_imported_modules_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: set[Path] = set()

    def advise(file: int, start: int, size: int, advice: int) -> None:
        assert (start, size, advice) == (0, 0, os.POSIX_FADV_WILLNEED)
        read.add(Path(f"/proc/self/fd/{file}").resolve())

    monkeypatch.setattr(os, "posix_fadvise", advise)
    monkeypatch.setattr(read_ahead, "LARGE_LIBRARY_BYTES", 2**16)
    monkeypatch.setattr(read_ahead, "imported", lambda study, variants: ["never_installed"])
    read_ahead.main()
    numpys = Path(np.__file__).parent.resolve()
    assert any(path.is_relative_to(numpys) and ".so" in path.name for path in read)
    assert all(path.stat().st_size >= 2**16 for path in read)
