"""Studies import from the door, `analysis.api`, from their folders, and from what studies share."""

from __future__ import annotations

import re

from analysis import ROOT
from tests.repository import STUDIES, TOPS

PAST_THE_DOOR = re.compile(r"^\s*(?:from|import) (?:analysis(?!\.api\b)|\.\.).*", re.MULTILINE)
HEADER = re.compile(r'^\s*#\s*include "(.*\.h)"', re.MULTILINE)
OTHERS = re.compile(rf"^\s*(?:from|import) (?:{'|'.join(top.name for top in TOPS)})\.(\w+)", re.M)
BUILT_ON = {"decode_step": {"hot_set"}}


def test_studies_import_from_the_door_only() -> None:
    """And none from the folder of another, but for layers made of the operators of one layer."""
    code = (".py", ".h", ".cpp", ".cu")
    files = [path for top in TOPS for path in top.rglob("*") if path.suffix in code]
    assert len(files) > 200
    for file in files:
        text = file.read_text()
        paths = [(file.parent / name).resolve() for name in HEADER.findall(text)]
        used = {path.relative_to(ROOT).parts[1] for path in paths if path.is_relative_to(ROOT)}
        if file.suffix == ".py":
            assert PAST_THE_DOOR.findall(text) == [], file
            used = {*OTHERS.findall(text)}
        others = used & STUDIES.keys() - {file.relative_to(ROOT).parts[1]}
        assert others <= BUILT_ON.get(file.parent.name, set()), file
