"""Whether another run would confirm the figures: each run against all others."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.base import statistics
from analysis.base.quantities import digits, digits_interval, percent
from analysis.base.statistics import CONFIDENCE, MIN_RUNS, estimate
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.rows import RepeatabilityRow, rows_of
from analysis.site.pages.html import table
from analysis.site.pages.page import macro


@macro("repeatability")
def repeatability_section(inputs: Inputs) -> str:
    """How well the other runs of each machine predict each of its runs."""
    rows = rows_of(inputs.tables["repeatability"], RepeatabilityRow)
    if not rows:
        return f"No machine has more than {MIN_RUNS} runs yet."
    columns = ["machine", "study", "runs", "hosts", "times inside", "half-width"]
    columns += ["ratios inside", "contradicted", "false alarms"]
    lines = [
        [
            *(inputs.called(row.machine), row.study, str(row.runs), str(row.hosts)),
            *(_of(row.times_inside, row.times), percent(row.half_width)),
            *(_of(row.ratios_inside, row.ratios), _of(row.contradicted, row.decided)),
            _of(row.repeats_different, row.repeats),
        ]
        for row in rows
    ]
    said = (
        f"The {CONFIDENCE * 100:g} % intervals of the other runs contain"
        f" {_total(rows, 'times_inside', 'times')} times and"
        f" {_total(rows, 'ratios_inside', 'ratios')} ratios of the left-out runs. A left-out run"
        f" contradicts {_total(rows, 'contradicted', 'decided')} decided comparisons."
    )
    return "\n\n".join([said, table(columns, lines, numeric=columns[2:])])


@macro("interval")
def interval(kind: str, *runs: Sequence[float]) -> str:
    """The interval of an example.

    kind: of its values, as analysis/base/statistics.py calls it
    runs: the rounds of each run
    """
    _, low, high = estimate(runs, getattr(statistics, kind))
    return digits(low) if low == high else digits_interval(low, high)


def _total(rows: Sequence[RepeatabilityRow], some: str, all_: str) -> str:
    """`9 of 10 (90 %)`, over all `rows`."""
    count, total = (sum(getattr(row, name) for row in rows) for name in (some, all_))
    return f"{count} of {total}" + (f" ({percent(count / total)})" if total else "")


def _of(count: int, total: int) -> str:
    return f"{count} of {total}" if total else ""
