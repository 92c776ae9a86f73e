"""When the bounds of claims were set: bounds.csv beside study.yaml.

A bound that was set after looking at a run would fit that run. So a claim is judged by runs that
began after the commit that set what it compares. A claim may be divided or joined with another: its
comparisons are as old as before, unless one of them was dropped.
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
    """A claim whose comparisons have this hash. `commit`, made at `set_at` (UTC), set the last of
    them."""

    claim: str
    sha256: str
    commit: str
    set_at: str


def digests(study: Mapping[str, Any]) -> dict[str, str]:
    """By the id of every claim in a study.yaml that is tested: the hash of what it compares, where,
    and of its bounds. What it says is not in it."""
    return {claim: _hash(*compared) for claim, compared in _compared(study).items()}


def comparisons(study: Mapping[str, Any]) -> dict[str, list[str]]:
    """As digests(), for each of a claim's comparisons."""
    return {
        claim: [_hash([part], published) for part in parts]
        for claim, (parts, published) in _compared(study).items()
    }


def _compared(study: Mapping[str, Any]) -> dict[str, tuple[list[dict[str, Any]], object]]:
    headline = {"case": study.get("headline")}
    return {
        claim["id"]: (
            [headline | part for part in ([claim["test"]] if "test" in claim else claim["all"])],
            claim.get("published"),
        )
        for claim in study.get("claims") or []
        if {"test", "all"} & set(claim)
    }


def _hash(compared: list[dict[str, Any]], published: object) -> str:
    text = json.dumps([compared, published], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def read_bounds(path: Path) -> list[BoundRow]:
    """The rows of a bounds.csv; none where there is no such file."""
    return read_records(path, BoundRow) if path.exists() else []


def settings(rows: Iterable[BoundRow], study: Mapping[str, Any]) -> dict[str, BoundRow]:
    """By claim of a study.yaml, the row that tells when its bounds were set; none where they have
    been changed since, or are not in any commit yet."""
    current = digests(study)
    return {row.claim: row for row in rows if current.get(row.claim) == row.sha256}
