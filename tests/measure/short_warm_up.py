"""Imported by the fork server of these tests: its rounds warm up for a millisecond only."""

from __future__ import annotations

from analysis.measure import round as rounds

rounds.WARM_UP_S = 0.001
