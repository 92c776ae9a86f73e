"""Reading ahead what measuring imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from analysis import ROOT
from analysis.measure import read_ahead
from analysis.study import discover


def test_libraries_of_imported_modules_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: set[Path] = set()

    def advise(file: int, start: int, size: int, advice: int) -> None:
        assert (start, size, advice) == (0, 0, os.POSIX_FADV_WILLNEED)
        read.add(Path(f"/proc/self/fd/{file}").resolve())

    monkeypatch.setattr(os, "posix_fadvise", advise)
    monkeypatch.setattr(read_ahead, "LARGE_LIBRARY_BYTES", 2**16)
    monkeypatch.setattr(read_ahead, "imported", lambda study, variants: ["never_installed"])
    monkeypatch.setattr(read_ahead, "POOL_BYTES", 2**20)
    read_ahead.main()
    numpys = Path(np.__file__).parent.resolve()
    assert any(path.is_relative_to(numpys) and ".so" in path.name for path in read)
    assert all(path.stat().st_size >= 2**16 for path in read)


@pytest.mark.parametrize(("seconds", "touched"), [(30.0, 2**28), (-1.0, 0)])
def test_memory_is_used_until_time_is_over_and_freed(seconds: float, touched: int) -> None:
    program = (
        "import re; from pathlib import Path; from analysis.measure import read_ahead\n"
        f"read_ahead.MAX_TOUCH_S = {seconds}\n"
        "read_ahead.touch_memory(2**28)\n"
        "status = Path('/proc/self/status').read_text()\n"
        "print(*re.findall(r'Vm(?:HWM|RSS):\\s+(\\d+) kB', status))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    peak_kb, after_kb = map(int, printed.stdout.split())
    assert abs((peak_kb - after_kb) * 1024 - touched) < 2**25


def test_as_much_memory_is_touched_as_the_large_pools_have() -> None:
    largest = [study.constants.get("largest_pool_mib", 0) for study in discover().values()]
    assert max(largest) * 2**20 == read_ahead.POOL_BYTES
