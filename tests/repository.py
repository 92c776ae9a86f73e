"""The studies of the repository, read once."""

from __future__ import annotations

from analysis.study import discover

STUDIES = discover()
