"""A small study's description, and edits of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from analysis.study import Study, load_study


def description() -> dict[str, Any]:
    """A small study with a step, its repeat, a ceiling and two case sets."""
    return {
        "title": "Copy",
        "question": "How fast?",
        "budget_s": 5,
        "constants": {"row_bytes": 16},
        "metrics": {"host_time": {"unit": "s", "label": "host time"}},
        "cases": {
            "small": {"rows": [1, 2], "draw": ["once", "twice"], "payload_bytes": "rows*row_bytes"},
            "large": {"rows": [64], "draw": ["once"], "payload_bytes": 1024, "grid": "full"},
        },
        "headline": {"rows": 2, "draw": "once"},
        "variants": [
            {"name": "first", "role": "step", "title": "First", "cases": ["small", "large"]},
            {
                "name": "second",
                "role": "step",
                "title": "Second",
                "after": "first",
                "cases": ["small"],
                "constants": {"row_bytes": 32},
            },
            {
                "name": "again",
                "role": "step",
                "title": "First again",
                "after": "first",
                "source": "first",
                "cases": ["small"],
            },
            {"name": "limit", "role": "ceiling", "title": "Limit", "cases": ["small"]},
            {"name": "kernel", "role": "step", "title": "K", "cases": ["small"], "needs": ["gpu"]},
        ],
    }


def load(folder: Path, data: Mapping[str, Any]) -> Study:
    folder.mkdir(exist_ok=True)
    (folder / "study.yaml").write_text(yaml.safe_dump(dict(data), sort_keys=False))
    for source in ("first.py", "second.py", "limit.cpp", "kernel.cu"):
        (folder / source).touch()
    return load_study(folder / "study.yaml")


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
