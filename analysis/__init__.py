"""Hotpath's Python package: study descriptions, builds, measurement, results and report."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The repository's root: studies, results and docs are found from here."""
