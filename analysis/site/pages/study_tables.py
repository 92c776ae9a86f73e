"""Tables that a study's page_tables.py computes from its measured figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from analysis.base.errors import require_known
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.html import table
from analysis.site.pages.page import macro
from analysis.toolchain.modules import load_python

SOURCE: Final = "page_tables"


@dataclass(frozen=True)
class PageTable:
    """A table with a header row; `numeric` columns are set right. Without rows, the page shows the
    sentence `empty_text`."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    empty_text: str
    numeric: Sequence[str] = ()


@macro("study_table")
def study_table(facts: StudyFacts, name: str) -> str | Markup:
    """A table that the study computes from its measured figures.

    name: a function of `TABLES` in the study's page_tables.py
    """
    tables: Mapping[str, Callable[[StudyFacts], PageTable]] = load_python(
        facts.study, SOURCE
    ).TABLES
    require_known("table", name, sorted(tables))
    made = tables[name](facts)
    if not made.rows:
        return made.empty_text
    return table(made.columns, made.rows, numeric=made.numeric)
