"""Hotpath's Python package: study descriptions, builds, measurement, results and report."""

import sys
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parent.parent
"""The repository's root: studies, results and docs are found from here."""

BUILD = ROOT / "build"
"""Everything that is made and not committed."""


def _tell(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    """An interrupt is no fault, wherever it comes: mostly while modules are imported."""
    if issubclass(kind, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, where)


sys.excepthook = _tell
