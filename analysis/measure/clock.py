"""The time of day, in the format of the results."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now(timespec: str = "milliseconds") -> str:
    """This moment in UTC, `2026-01-31T12:00:00.000Z`."""
    return datetime.now(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")
