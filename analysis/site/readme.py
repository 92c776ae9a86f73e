"""Put the rates of one study, from the committed results, into README.md.

python -m analysis.site.readme
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from analysis import ROOT
from analysis.base.cli import fail_in_one_line, program
from analysis.base.errors import HotpathError
from analysis.base.quantities import INTERVAL, digits, digits_interval, with_interval
from analysis.results.store.collect import collect
from analysis.results.tables.rows import SummaryRow, rows_of
from analysis.results.tables.summary import summarise
from analysis.site.facts.basis import basis_phrase, ruled
from analysis.study import Study, Variant, discover

PLACE: Final = re.compile(
    r"(?P<begin><!-- results:begin (?P<study>\w+) (?P<machine>[a-z0-9-]+) -->\n).*?"
    r"(?P<end><!-- results:end -->)",
    re.DOTALL,
)
BAR_COLUMNS: Final = 32
EIGHTHS: Final = " ▏▎▍▌▋▊▉"
ROLES: Final = {"step": "█", "reference": "▓", "ceiling": "░"}
"""The roles that are shown, and what their bars are drawn with."""


@dataclass(frozen=True)
class Rate:
    """In GB/s; `spread` is its interval or, if its runs allow none, their number."""

    median: float
    spread: str
    is_stale: bool


def updated(text: str, results: Path, studies: Mapping[str, Study]) -> str:
    """`text` with a picture of today's results in the place that it marks.

    HotpathError where it marks none, or the machine has no result of the study.
    """
    place = PLACE.search(text)
    if place is None:
        raise HotpathError("README.md: expected a place between results:begin and results:end")
    study = studies[place["study"]]
    drawn = picture(study, place["machine"], rates(study, place["machine"], results))
    return f"{text[: place.end('begin')]}```text\n{drawn}\n```\n{text[place.start('end') :]}"


def rates(study: Study, machine: str, results: Path) -> dict[str, Rate]:
    """Payload rates of the variants that have the headline case, by the metric they compare by."""
    samples = collect(results, {study.name: study}, only={study.name}).samples
    measured = samples[(samples["machine"] == machine) & (samples["study"] == study.name)]
    # The other cases show the speed of the host.
    summary = summarise(measured)
    rows = rows_of(summary[summary["case"] == study.headline], SummaryRow)
    by_metric = {(row.variant, row.metric): ruled(row) for row in rows}
    found: dict[str, Rate] = {}
    for variant in study.with_role(*ROLES):
        payload = study.payloads.get((variant.name, study.headline), 0)
        metrics = [name for name in study.metrics_for(variant) if (variant.name, name) in by_metric]
        if payload and metrics:
            row = by_metric[variant.name, metrics[0]]
            median, low, high = (
                payload / seconds / 1e9 for seconds in (row.median, row.ci_high, row.ci_low)
            )
            spread = digits_interval(low, high) or basis_phrase(row)
            found[variant.name] = Rate(median, spread, bool(row.stale))
    if not found:
        raise HotpathError(f"README.md: no result of {study.name} on {machine}")
    return found


def picture(study: Study, machine: str, found: Mapping[str, Rate]) -> str:
    """A line a variant: its name, a bar as long as its rate, the rate and its interval."""
    most = max(rate.median for rate in found.values())
    shown = [variant for role in ROLES for variant in study.with_role(role)]
    lines = [
        _line(variant, found[variant.name], most, max(map(len, found)))
        for variant in shown
        if variant.name in found
    ]
    drawn = ", ".join(f"{mark} {role}" for role, mark in ROLES.items())
    title = f"{study.title}, {study.headline}, on {machine}"
    return "\n".join([title, f"payload rate in GB/s with its {INTERVAL}; {drawn}", "", *lines])


def _line(variant: Variant, rate: Rate, most: float, name_columns: int) -> str:
    eighths = max(1, round(rate.median / most * BAR_COLUMNS * 8))
    bar = ROLES[variant.role] * (eighths // 8)
    if variant.role == "step":
        bar += EIGHTHS[eighths % 8]
    figure = with_interval(digits(rate.median), rate.spread)
    figure += " stale" * rate.is_stale
    return f"{variant.name:{name_columns}}  {bar.strip() or '▏':{BAR_COLUMNS}}  {figure}"


def main() -> None:
    program("analysis.site.readme", __doc__).parse_args()
    readme = ROOT / "README.md"
    readme.write_text(updated(readme.read_text(), ROOT / "results", discover()))


if __name__ == "__main__":
    fail_in_one_line(main)
