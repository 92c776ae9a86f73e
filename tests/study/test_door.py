"""Studies import from the door, `analysis.api`, from their folders, and from what studies share."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from analysis import ROOT
from tests.repository import STUDIES, TOPS

DOOR = "analysis.api"
SUFFIXES = (".py", ".h", ".cpp", ".cu")
CODE = [path for top in TOPS for path in top.rglob("*") if path.suffix in SUFFIXES]


def imports_past_the_door(file: Path) -> Iterator[str]:
    """Every module of the engine that `file` imports and that is not of the door."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and not node.level:
            modules = [node.module or ""]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            continue
        for module in modules:
            if module.split(".")[0] == "analysis" and not f"{module}.".startswith(f"{DOOR}."):
                yield f"{file.name}:{node.lineno}: {module}"


@pytest.mark.parametrize("top", TOPS, ids=lambda top: top.name)
def test_studies_import_from_the_door_only(top: Path) -> None:
    files = sorted(top.rglob("*.py"))
    assert files
    assert [past for file in files for past in imports_past_the_door(file)] == []


@pytest.mark.parametrize(
    "line",
    [
        "from analysis.measure.cell import Operation",
        "import analysis.measure.cell",
        "from analysis import ROOT",
        "def f():\n    from analysis.apis import x",
    ],
)
def test_an_import_past_the_door_is_found(line: str, tmp_path: Path) -> None:
    file = tmp_path / "workload.py"
    file.write_text(f"from analysis.api.measure import Operation\n{line}\n")
    assert len(list(imports_past_the_door(file))) == 1


def imported_folders(file: Path) -> Iterator[str]:
    """The names of the folders at depth two from which a file imports or includes something."""
    if file.suffix != ".py":
        for name in re.findall(r'^\s*#\s*include "(.*)"', file.read_text(), re.MULTILINE):
            path = (file.parent / name).resolve()
            # A variant may be the whole of another study's variant.
            if path.suffix not in (".cpp", ".cu") and path.is_relative_to(ROOT):
                yield path.relative_to(ROOT).parts[1]
        return
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level < 2, f"{file}: leaves its folder by a relative import"
            modules = [f"{node.module}.{alias.name}" for alias in node.names] * (not node.level)
        else:
            continue
        tops = {top.name for top in TOPS}
        yield from (module.split(".")[1] for module in modules if module.split(".")[0] in tops)


def test_no_study_imports_from_the_folder_of_another() -> None:
    found = {
        (file.relative_to(ROOT).as_posix(), folder)
        for file in CODE
        for folder in imported_folders(file)
        if folder in STUDIES and folder != file.relative_to(ROOT).parts[1]
    }
    assert found == set()
