"""The medians of metrics as a table that charts and tables of a study select from."""

from __future__ import annotations

import pandas as pd

from analysis.base.quantities import quantity, quantity_interval
from analysis.site.facts.addresses import samples_addresses
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import parse_case


def figures(facts: StudyFacts, *metrics: str) -> pd.DataFrame:
    """A row for each median of these metrics: the columns of MeasuredRow, a column for each key of
    the study's cases, the variant's `title`, `state` (measured or stale) and `href`, and the median
    and its interval in words, `short` and `interval`."""
    rows = facts.summary[facts.summary["metric"].isin(metrics)]
    keys = pd.DataFrame([parse_case(case) for case in rows["case"]], index=rows.index)
    titles = {variant.name: variant.title for variant in facts.study.variants}
    units = [facts.study.metrics[metric].unit for metric in rows["metric"]]
    ends = rows["median"], rows["ci_low"], rows["ci_high"]
    return rows.assign(
        title=rows["variant"].map(titles),
        state=rows["stale"].map({0: "measured", 1: "stale"}),
        href=samples_addresses(rows),
        short=[*map(quantity, rows["median"], units)],
        interval=[*map(quantity_interval, *ends, units)],
    ).join(keys.reindex(columns=facts.study.case_keys))


def fresh_figures(facts: StudyFacts, *metrics: str) -> pd.DataFrame:
    """The rows of `figures` that are not stale."""
    rows = figures(facts, *metrics)
    return rows[rows["stale"] == 0]
