"""What sets a fresh machine up."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from analysis import ROOT

FAILS = """#!/bin/sh
echo "error: Failed to download \\`numpy==2.0\\`" >&2
echo "  cause: failed to lookup address information" >&2
exit 2
"""


def test_without_a_network_the_error_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "env").mkdir()
    shutil.copy(ROOT / "env" / "run", tmp_path / "env")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "uv").write_text(FAILS)
    (tmp_path / "bin" / "uv").chmod(0o755)
    done = subprocess.run(
        [tmp_path / "env" / "run", "touch", "ran"],
        env=os.environ | {"PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    [line] = (done.stdout + done.stderr).splitlines()
    assert line.startswith("error: nothing could be installed: Failed to download `numpy==2.0`; ")
    assert "packages of env/pyproject.toml" in line
    assert "failed to lookup" in (tmp_path / ".uv" / "log").read_text()
    assert not (tmp_path / "ran").exists()
