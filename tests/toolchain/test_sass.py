"""Machine code: loads and stores by width, and how many loads are in flight."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from analysis.base.errors import HotpathError
from analysis.toolchain import sass

# From a build of a copy kernel: an index, then 16 bytes a lane at once, and a guarded rest.
SNIPPET = Path(__file__).with_name("copy_sm90.sass").read_text()


def test_real_disassembly_is_read_by_width_and_order() -> None:
    (code,) = sass.parse_sass(SNIPPET)
    assert (code.arch, code.kernel) == ("sm_90", "_Z11gather_rows6Gather")
    assert code.loads == Counter({128: 2, 64: 1})
    assert code.stores == Counter({128: 2})
    # The code waits for the index before it requests either vector.
    assert (code.loads_in_flight, code.in_flight_bytes) == (2, 2 * 16 * 32)


def test_invalid_disassembly_has_no_kernels() -> None:
    assert list(sass.parse_sass("")) == []
    assert list(sass.parse_sass("Fatbin elf code:\n\tcode for sm_90\n\t.target sm_90\n")) == []


def test_missing_tools_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analysis.toolchain.sass.sysconfig.get_path", lambda _: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HotpathError, match="cuobjdump is neither in this environment nor in PATH"):
        sass.find_tools()
