"""Edits of files that are read again."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


def replace_in(path: Path, old: str, new: str) -> None:
    """Replace `old`, which must exist, and set a later time of change."""
    text = path.read_text()
    assert old in text
    modified = path.stat().st_mtime_ns
    path.write_text(text.replace(old, new))
    os.utime(path, ns=(modified, modified + 1))


def edit_json(path: Path, change: Callable[[Any], object]) -> None:
    """Apply `change` to the text of the file."""
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
