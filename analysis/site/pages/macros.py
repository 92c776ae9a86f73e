"""The macros that pages embed: functions that `@macro` registers.

A page calls `{{ name(arguments) }}`. Most macros are functions of the modules that are imported
here; the others are below.
"""

from collections.abc import Sequence

from analysis import ROOT
from analysis.base import statistics
from analysis.base.errors import require_known
from analysis.base.quantities import digits, digits_interval, whole
from analysis.site.interface import CONSTANTS
from analysis.site.pages import (
    answers,
    chart_figures,
    inline,
    ledger,
    machines,
    reference,
    source,
    tables,
)
from analysis.site.pages.html import fenced
from analysis.site.pages.page import MACROS, Page, macro
from analysis.study.peers import releases


@macro
def constant(page: Page, name: str) -> str:
    """A constant of the code; shares as percentages, text as it is.

    name: name of a constant in analysis/site/interface.py, such as `CONFIDENCE`
    """
    require_known("constant", name, sorted(CONSTANTS))
    value = CONSTANTS[name]
    if isinstance(value, str):
        return value
    return f"{value * 100:g} %" if isinstance(value, float) else whole(value)


@macro
def release(page: Page, package: str) -> str:
    """The version of a package whose operators are measured, such as `sglang`."""
    require_known("package", package, sorted(releases()))
    return releases()[package]


@macro
def interval(page: Page, kind: str, *runs: Sequence[float]) -> str:
    """The interval of an example.

    kind: of its values, as analysis/base/statistics.py calls it
    runs: the rounds of each run
    """
    _, low, high = statistics.estimate(runs, getattr(statistics, kind))
    return digits(low) if low == high else digits_interval(low, high)


@macro
def file(page: Page, path: str, language: str = "text") -> str:
    """A file of the repository as a code block with a button that copies it.

    path: from the root of the repository
    language: as highlighting calls it
    """
    return fenced((ROOT / path).read_text(encoding="utf-8"), language)
