"""Studies import from the door, `analysis.api`, from their folders, and from what studies share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from analysis import ROOT
from tests.repository import STUDIES, TOPS

PAST_THE_DOOR = re.compile(r"^\s*(?:from|import) analysis(?!\.api\b).*", re.MULTILINE)
USED = re.compile(r'^\s*(?:#\s*include "(.*\.h)"|(?:from|import) ([\w.]+))', re.MULTILINE)
BUILT_ON = {"decode_step": {"hot_set"}}
OTHERS = re.compile(rf"^(?:{'|'.join(top.name for top in TOPS)})\.(\w+)")


def folders_used(text: str, file: Path) -> Iterator[str]:
    """The names of the folders at depth two of whose headers or modules a file uses some."""
    for header, module in USED.findall(text):
        assert not module.startswith(".."), f"{file}: leaves its folder by a relative import"
        if found := OTHERS.match(module):
            yield found[1]
        elif header and (path := (file.parent / header).resolve()).is_relative_to(ROOT):
            yield path.relative_to(ROOT).parts[1]


def test_studies_import_from_the_door_only() -> None:
    """And none from the folder of another, but for layers that are made of one layer's operators."""
    code = (".py", ".h", ".cpp", ".cu")
    files = [path for top in TOPS for path in top.rglob("*") if path.suffix in code]
    assert len(files) > 200
    for file in files:
        text = file.read_text()
        assert file.suffix != ".py" or PAST_THE_DOOR.findall(text) == [], file
        others = {*folders_used(text, file)} & STUDIES.keys() - {file.relative_to(ROOT).parts[1]}
        assert others <= BUILT_ON.get(file.parent.name, set()), file
