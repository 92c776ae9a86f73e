"""Parts of a page that a reader operates: a study's script, its data, and a table without it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from analysis import ROOT
from analysis.base.errors import FieldError
from analysis.site.facts.study_facts import StudyFacts
from analysis.toolchain.modules import load_python

SOURCE: Final = "widgets"
DATA_SUFFIX: Final = ".widget.json"
TABLE_SUFFIX: Final = ".table.json"
SCRIPT_SUFFIX: Final = ".js"
FORM: Final = ROOT / "docs" / "assets" / "form.js"
_IMPORTED: Final = re.compile(r'^import .* from "\./([\w-]+\.js)";$', re.MULTILINE)


@dataclass(frozen=True)
class Widget:
    """`data` is JSON for `show(root, data, name)` of the study's <name>.js, or of FORM.

    `columns` and `rows` are the table that readers without scripts see.
    """

    data: object
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    is_form: bool = False


def study_widgets(facts: StudyFacts) -> Mapping[str, Widget | None]:
    """`widgets(facts)` of the study's widgets.py, by name; None is one without data."""
    if not (facts.study.folder / f"{SOURCE}.py").exists():
        return {}
    widgets: Mapping[str, Widget | None] = load_python(facts.study, SOURCE).widgets(facts)
    return widgets


def write_widgets(facts: StudyFacts, folder: Path) -> None:
    """Write the widgets of a study to the folder of its charts. FieldError without a script."""
    for name, widget in study_widgets(facts).items():
        if widget is None:
            continue
        script = FORM if widget.is_form else facts.study.folder / f"{name}{SCRIPT_SUFFIX}"
        if not script.is_file():
            raise FieldError(f"widget {name}", f"a script {script.name}", "no such file")
        for module in _modules(script):
            shutil.copy(
                module, folder / (f"{name}{SCRIPT_SUFFIX}" if module == script else module.name)
            )
        (folder / f"{name}{DATA_SUFFIX}").write_text(json.dumps(widget.data, allow_nan=False))
        table = {"columns": widget.columns, "rows": widget.rows}
        (folder / f"{name}{TABLE_SUFFIX}").write_text(json.dumps(table))


def _modules(script: Path) -> Iterator[Path]:
    """The script, and the modules beside it that it imports."""
    yield script
    for name in _IMPORTED.findall(script.read_text(encoding="utf-8")):
        yield from _modules(script.with_name(name))


def read_table(folder: Path, name: str) -> Mapping[str, Any] | None:
    """The columns and rows of a widget that `write_widgets` wrote; None if it has no data."""
    path = folder / f"{name}{TABLE_SUFFIX}"
    found: Mapping[str, Any] | None = json.loads(path.read_text()) if path.exists() else None
    return found
