"""The package's settings for the libraries that it imports."""

from __future__ import annotations

import os
import subprocess
import sys

from analysis import ROOT

PROGRAM = "import os, analysis, numpy, scipy.special; print(len(os.listdir('/proc/self/task')))"


def test_numerical_libraries_start_no_threads() -> None:
    others = {name: value for name, value in os.environ.items() if "NUM_THREADS" not in name}
    printed = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env=others,
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(printed.stdout) == 1
