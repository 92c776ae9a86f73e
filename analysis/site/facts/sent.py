"""Times of machines that others sent, by the same rules as measured ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from analysis.results.store.submitted import Submission as Submission
from analysis.site.facts.basis import is_headline
from analysis.site.facts.rows import runs_text
from analysis.study import Study, Variant


class SentTime(NamedTuple):
    """Seconds of a variant in its shown case; the ends are NaN if its runs allow no interval."""

    metric: str
    seconds: float
    low: float
    high: float
    by_run: str
    hosts: int


def sent_times(submission: Submission, study: Study, variant: Variant) -> Iterator[SentTime]:
    """The times that compare variants, the preferred one first, if they are of today's code."""
    sent = submission.of_today(study.name, variant.name, study.shown_case(variant).id)
    for metric in study.metrics_for(variant):
        if metric in sent:
            one = sent[metric]
            row = SentTime(
                metric, one["median"], *_ends(one), runs_text(one["by_run"]), one["hosts"]
            )
            yield row if is_headline(row) else row._replace(low=math.nan, high=math.nan)


def _ends(figure: Mapping[str, float | None]) -> tuple[float, float]:
    low, high = figure["low"], figure["high"]
    return (math.nan, math.nan) if low is None or high is None else (low, high)
