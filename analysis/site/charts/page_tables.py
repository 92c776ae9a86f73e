"""Tables that a study's page_tables.py computes from its measured figures, beside its charts.

Some tables take seconds, so the charts' jobs of all studies compute them in parallel.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from markupsafe import Markup, escape

from analysis.base.errors import require_known
from analysis.base.forked import forked_map
from analysis.site.facts.study_facts import StudyFacts
from analysis.toolchain.modules import load_python

SOURCE: Final = "page_tables"
SUFFIX: Final = ".page_table.json"


@dataclass(frozen=True)
class PageTable:
    """A table with a header row; `numeric` columns are set right. Without rows, the page shows the
    sentence `empty_text`."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    empty_text: str
    numeric: Sequence[str] = ()


def write_page_tables(facts: StudyFacts, folder: Path) -> None:
    """Write the page tables of a study to the folder of its charts, with their cells as HTML."""
    if not (facts.study.folder / f"{SOURCE}.py").exists():
        return
    tables: Mapping[str, Callable[[StudyFacts], PageTable]] = load_python(
        facts.study, SOURCE
    ).TABLES

    def write(name: str) -> None:
        made = tables[name](facts)
        rows = [[escape(cell) for cell in row] for row in made.rows]
        (folder / f"{name}{SUFFIX}").write_text(json.dumps({**vars(made), "rows": rows}))

    forked_map(write, tables)


def read_page_table(folder: Path, name: str) -> PageTable:
    """A table that `write_page_tables` wrote. FieldError for another name."""
    known = sorted(path.name.removesuffix(SUFFIX) for path in folder.glob(f"*{SUFFIX}"))
    require_known("table", name, known)
    found = PageTable(**json.loads((folder / f"{name}{SUFFIX}").read_text()))
    return replace(found, rows=[[Markup(cell) for cell in row] for row in found.rows])
