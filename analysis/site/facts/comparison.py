"""Comparison of machines: ratios of their speeds in the cases that pages show."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

import numpy as np
import pandas as pd

from analysis.compare.judge import DIFFERENT, EQUAL_WITHIN, UNDECIDED, judge
from analysis.compare.judge import EQUAL as IS_EQUAL
from analysis.compare.side import Run
from analysis.site.facts.basis import figures_by_run, is_headline
from analysis.site.facts.inputs import MeasuredRow
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Variant

FASTER: Final = "faster"
SLOWER: Final = "slower"
EQUAL: Final = f"equal within {EQUAL_WITHIN * 100:g} %"
UNCLEAR: Final = UNDECIDED
"""Verdicts on a ratio. FASTER and SLOWER ones are different."""
COLUMNS: Final = (
    *("machine", "against", "study", "variant", "title", "case", "clock", "metric"),
    *("payload_bytes", "seconds", "other_seconds", "ratio", "low", "high", "verdict", "is_judged"),
)


def machine_ratios(
    studies: Collection[StudyFacts], pairs: Iterable[tuple[str, str]]
) -> pd.DataFrame:
    """Speed of the first machine of each of `pairs` relative to the second: a row by COLUMNS for
    each variant that both have measured in its shown case, by the first metric that both have.

    Runs of both decide the verdicts, which are on all rows of a pair together: `ratio` is then that
    of the geometric means over runs, with its interval. Where either has too few runs, the row is
    not judged. First come the largest certain differences, then other verdicts, then the rest.
    """
    rows = [row for pair in pairs for row in _ratios(studies, pair)]
    table = pd.DataFrame(rows, columns=COLUMNS)
    is_different = table["verdict"].isin([FASTER, SLOWER]).to_numpy()
    is_judged = table["is_judged"].to_numpy(dtype=bool)
    sizes = np.abs(np.log(table["ratio"].to_numpy(dtype=float)))
    order = np.lexsort([-sizes, ~is_judged, ~is_different])
    return table.iloc[order].reset_index(drop=True)


def _ratios(
    studies: Collection[StudyFacts], machines: tuple[str, str]
) -> Iterator[tuple[object, ...]]:
    pairs: dict[tuple[str, ...], tuple[StudyFacts, MeasuredRow, MeasuredRow]] = {}
    for facts in studies:
        for variant in facts.study.subjects if {*machines} <= {*facts.machines} else ():
            if pair := _pair(facts, variant, *machines):
                pairs[facts.study.name, variant.name] = facts, *pair
    runs = {
        key: ([*map(Run, figures_by_run(of))], [*map(Run, figures_by_run(against))])
        for key, (_, of, against) in pairs.items()
        if is_headline(of) and is_headline(against)
    }
    decided: dict[Any, Any] = {judged.row: judged for judged in judge(runs).itertuples()}
    for key, (facts, of, against) in pairs.items():
        variant, metric = facts.study.variant(of.variant), facts.study.metrics[of.metric]
        place = (*machines, *key, variant.title, of.case, metric.label, of.metric)
        times = (facts.study.shown_case(variant).payload_bytes, of.median, against.median)
        judged = decided.get(key)
        value = judged.ratio if judged else against.median / of.median
        words = {DIFFERENT: FASTER if value > 1 else SLOWER, IS_EQUAL: EQUAL, UNDECIDED: UNCLEAR}
        interval = (judged.low, judged.high) if judged else (math.nan, math.nan)
        verdict = words[judged.verdict if judged else UNDECIDED]
        yield (*place, *times, value, *interval, verdict, judged is not None)


def _pair(
    facts: StudyFacts, variant: Variant, *machines: str
) -> tuple[MeasuredRow, MeasuredRow] | None:
    """Fresh figures of both machines in the shown case, by the first metric that both have; None
    without one."""
    for metric in facts.study.metrics_for(variant):
        rows = [facts.metric(machine, variant, metric) for machine in machines]
        fresh = [row for row in rows if row is not None and not row.stale]
        if len(fresh) == 2:
            return fresh[0], fresh[1]
    return None
