"""The macros that pages embed: functions that `@macro()` registers.

A page calls `{{ name(arguments) }}`. Most macros are functions of the modules that are imported
here; the others are below.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from analysis.base.errors import require_known
from analysis.base.quantities import whole
from analysis.site.charts.explorer import first_choice
from analysis.site.charts.theme import CONFIGURATION
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.interface import CONSTANTS
from analysis.site.pages import (
    architecture,
    chart_figures,
    citing,
    counters,
    inline,
    ledger,
    machines,
    method,
    model,
    reference,
    source,
    study_pages,
    tables,
    templates,
)
from analysis.site.pages.common import ALL, EXPLORER, EXPLORER_START
from analysis.site.pages.html import link
from analysis.site.pages.page import MACROS, Page, macro
from analysis.study import parse_case


def define_env(env: Any) -> None:
    """Called by mkdocs-macros; the configuration's `extra.staged` holds what was staged."""
    page = Page(env.conf["extra"]["staged"], env)
    for name, function in MACROS.items():
        env.macro(functools.partial(function, page), name)


@macro()
def download(page: Page, name: str) -> Markup:
    """A link to a table, or to all samples.

    name: name of a file in data/, such as `summary.csv`
    """
    return link(page.address(f"data/{name}"), name)


@macro()
def constant(name: str) -> str:
    """A constant of the code; shares as percentages, sizes in MiB, text as it is.

    name: name of a constant in analysis/site/interface.py, such as `CONFIDENCE`
    """
    require_known("constant", name, sorted(CONSTANTS))
    value = CONSTANTS[name]
    if isinstance(value, str):
        return value
    if name.endswith("_BYTES"):
        return f"{value / 2**20:g} MiB"
    return f"{value * 100:g} %" if isinstance(value, float) else whole(value)


@macro()
def explorer(page: Page, studies: Mapping[str, StudyFacts]) -> Markup:
    """Selects and a chart of any metric over any key of any study, which a script fills."""
    about = {
        name: {
            "title": facts.study.title,
            "headline": parse_case(facts.study.headline),
            "metrics": {key: metric.label for key, metric in facts.study.metrics.items()},
        }
        for name, facts in studies.items()
        if not facts.summary.empty
    }
    names = page.staged.inputs.machine_names
    wanted = page.env.conf["extra"].get(EXPLORER_START, {})
    facts = studies.get(wanted.get("study"))
    start = first_choice(facts, wanted) if facts else None
    first = page.staged.charts[ALL][EXPLORER]
    return templates.macros("figure.html").explorer(
        *map(json.dumps, (about, names, start or {}, CONFIGURATION)), page.place.root, first
    )
