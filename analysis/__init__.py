"""Hotpath's Python package: study descriptions, builds, measurement, results and report."""

import os
import sys
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parent.parent
"""The repository's root: studies, results and docs are found from here."""

BUILD = ROOT / "build"
"""Folder of all files that are built and not committed."""

# No matrix here is large. Without this, the OpenBLAS of NumPy and SciPy starts a thread per core at
# every import, and on 16 cores these spin for seconds of CPU time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _tell(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    """An interrupt is no fault, wherever it comes: mostly while modules are imported."""
    if issubclass(kind, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, where)


sys.excepthook = _tell
