"""The time of day, in the format of the results."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path


def utc_now(timespec: str = "milliseconds") -> str:
    """This moment in UTC, `2026-01-31T12:00:00.000Z`."""
    return datetime.now(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


def changed_at(path: Path) -> str:
    """The second in UTC in which the file changed last; empty where there is none."""
    if not path.exists():
        return ""
    return f"{datetime.fromtimestamp(path.stat().st_mtime, UTC):%Y-%m-%dT%H:%M:%SZ}"
