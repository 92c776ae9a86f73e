"""Digests of the bounds of claims, and the bounds that a run names.

A threshold that was chosen after looking at a run would fit that run. So a run names the bounds as
they stood when it began, and a claim is judged by the runs that name its bound.
A claim may be divided or joined with another: its comparisons stay named, unless one was dropped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any, Final

DIGITS: Final = 12
"""Length of a digest in hex digits."""

Bounds = dict[str, list[str]]
"""Digests of the comparisons of claims, by the id of the claim."""


def digests(study: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Digests of the comparisons of every tested claim in a study.yaml, by the claim's id.

    A digest covers the compared variants, the case and the bound, but not the claim's sentence.
    """
    headline = {"case": study.get("headline")}
    found = {}
    for claim in study.get("claims") or []:
        parts = [claim["test"]] if "test" in claim else claim.get("all", [])
        if parts:
            published = claim.get("published")
            found[claim["id"]] = tuple(_digest(headline | part, published) for part in parts)
    return found


def _digest(part: Mapping[str, Any], published: object) -> str:
    text = json.dumps([[part], published], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def still_named(recorded: Bounds, current: Collection[str]) -> frozenset[str]:
    """The digests that a run recorded, without those of claims that have changed since.

    A claim has changed where one of its comparisons is in no claim of today; `current` has the
    digests of these. Else the failing half of a claim could be dropped to keep the other.
    """
    known = frozenset(current)
    return frozenset(
        digest for group in recorded.values() if known.issuperset(group) for digest in group
    )
