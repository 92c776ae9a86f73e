"""A small study's description, and edits of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.study import Study, load_study
from tests import synthetic


def description() -> dict[str, Any]:
    """A small study with a step, its repeat, a ceiling and two case sets."""
    return synthetic.description(
        "Copy",
        {"host_time": ("s", "host time")},
        {
            "small": {"rows": [1, 2], "draw": ["once", "twice"], "payload_bytes": "rows*row_bytes"},
            "large": {"rows": [64], "draw": ["once"], "payload_bytes": 1024, "grid": "full"},
        },
        [
            {"name": "first", "cases": ["small", "large"]},
            {"name": "second", "after": "first", "constants": {"row_bytes": 32}},
            {"name": "again", "after": "first", "source": "first"},
            {"name": "limit", "role": "ceiling"},
            {"name": "kernel", "needs": ["gpu"]},
        ],
        constants={"row_bytes": 16},
        headline={"rows": 2, "draw": "once"},
    )


def load(folder: Path, data: Mapping[str, Any]) -> Study:
    path = synthetic.write_description(folder, data)
    for source in ("first.py", "second.py", "limit.cpp", "kernel.cu"):
        (folder / source).touch()
    return load_study(path)


GONE = object()
"""In place of a value that is left out."""


def edit(data: Any, path: str, value: object) -> None:
    """Put `value` at `path` in a description: keys and indices with dots between."""
    *outer, last = (int(part) if part.isdigit() else part for part in path.split("."))
    for key in outer:
        data = data[key]
    if value is GONE:
        del data[last]
    else:
        data[last] = value
