"""A study's chart on its page: the drawing, its caption, and its data as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from markupsafe import Markup

from analysis.errors import require_known
from analysis.facts.points import CASE_PREFIX
from analysis.facts.study_facts import StudyFacts
from analysis.quantities import digits, percent, quantity, ratio, whole
from analysis.report.html import data_table, figure
from analysis.report.sentences import NOTHING
from analysis.report.staging import Staged


def chart_figure(
    staged: Staged, facts: StudyFacts, name: str, caption: str, address: Callable[[str], str]
) -> str | Markup:
    """The chart `name` of the study; `address` makes one within the site relative to the page.

    FieldError where it has no such chart, which is known as soon as there are results.
    """
    study, charts = facts.study.name, staged.charts[facts.study.name]
    chart = charts.get(name)
    if chart is None and not facts.machines:
        return NOTHING
    require_known("chart", name, sorted(charts))
    if chart is None:
        return "Nothing to draw yet."
    return figure(
        spec=address(f"charts/{study}/{name}.json"),
        root=address(""),
        description=chart.description,
        caption=caption,
        csv=address(f"charts/{study}/{name}.csv"),
        data=data_table(chart.data, _formats(chart.data.columns)),
    )


def _formats(columns: Iterable[str]) -> dict[str, tuple[str, Callable[..., object]]]:
    """Names and number formats of the columns of a chart's data; others are shown as they are."""
    known: dict[str, tuple[str, Callable[..., object]]] = {
        "seconds": ("time", lambda value: quantity(value, "s")),
        "rate": ("GB/s", digits),
        "payload_bytes": ("payload, B", whole),
        "n": ("samples", whole),
        "rounds": ("rounds", whole),
        "runs": ("runs", whole),
        "hosts": ("hosts", whole),
        "modes": ("modes", whole),
        "throttled": ("throttled", lambda value: f"{value:.0%}"),
        "verified": ("verified", lambda value: "yes" if value else "no"),
        "ratio": ("ratio", ratio),
        "share": ("of the limit", percent),
        "clock": ("clock", str),
    }
    hidden = {
        *("title", "label", "short", "case", "href", "metric", "is_default", "role"),
        *("seconds_low", "seconds_high", "rate_low", "rate_high", "ci_low", "ci_high"),
        "by_run",
    }
    return {
        name: known.get(name, (name.removeprefix(CASE_PREFIX).replace("_", " "), _plain))
        for name in columns
        if name not in hidden
    }


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
