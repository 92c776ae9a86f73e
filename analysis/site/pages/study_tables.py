"""Tables of a study's measured figures on its page."""

from __future__ import annotations

from markupsafe import Markup

from analysis.site.charts.page_tables import SUFFIX, read_page_table
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.html import from_file, gap, table
from analysis.site.pages.page import Page, macro


@macro("study_table")
def study_table(page: Page, facts: StudyFacts, name: str) -> str | Markup:
    """A table that the study computes from its measured figures.

    name: a function of `TABLES` in the study's page_tables.py
    """
    made = read_page_table(page.docs / "charts" / facts.study.name, name)
    if not made.rows:
        return gap(made.empty_text)
    file = f"{facts.study.name}/{name}{SUFFIX}"
    return from_file(file, table(made.columns, made.rows, numeric=made.numeric))
