"""Studies import from the door, `analysis.api`, and from their folders; never past it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repository import STUDIES

DOOR = "analysis.api"


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


@pytest.mark.parametrize("name", sorted(STUDIES))
def test_studies_import_from_the_door_only(name: str) -> None:
    files = sorted(STUDIES[name].folder.rglob("*.py"))
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
