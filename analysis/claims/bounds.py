"""When the bounds of claims were set: bounds.csv beside study.yaml.

A bound that was set after looking at a run would fit that run. So a claim is judged by runs that
began after the commit that set what it compares.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from analysis.records import read_records

FILE: Final = "bounds.csv"
DIGITS: Final = 12
"""Of hashes, so many hex digits."""


@dataclass(frozen=True)
class BoundRow:
    """A claim whose comparisons have this hash since `commit`, made at `set_at` (UTC)."""

    claim: str
    sha256: str
    commit: str
    set_at: str


def digests(study: Mapping[str, Any]) -> dict[str, str]:
    """By the id of every claim in a study.yaml that is tested: the hash of what it compares, where,
    and of its bounds. What it says is not in it."""
    return {
        claim["id"]: _digest(claim, study.get("headline"))
        for claim in study.get("claims") or []
        if {"test", "all"} & set(claim)
    }


def _digest(claim: Mapping[str, Any], headline: object) -> str:
    parts = [claim["test"]] if "test" in claim else claim["all"]
    compared = [{"case": headline, **part} for part in parts]
    text = json.dumps([compared, claim.get("published")], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def read_bounds(path: Path) -> list[BoundRow]:
    """The rows of a bounds.csv; none where there is no such file."""
    return read_records(path, BoundRow) if path.exists() else []


def settings(rows: Iterable[BoundRow], study: Mapping[str, Any]) -> dict[str, BoundRow]:
    """By claim of a study.yaml, the row that tells when its bounds were set; none where they have
    been changed since, or are not in any commit yet."""
    current = digests(study)
    return {row.claim: row for row in rows if current.get(row.claim) == row.sha256}
