"""Every variant of a study in one case, beside what none can exceed; and a few over all cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import altair as alt
import pandas as pd

from analysis.base.quantities import INTERVAL
from analysis.results.tables.rows import RUN_SEPARATOR
from analysis.site.charts.lines import clipped, line_chart
from analysis.site.charts.rows import MARK_PX, row_chart
from analysis.site.charts.theme import (
    BASIS_COLUMNS,
    MAX_LINES,
    Chart,
    Select,
    colour,
    faded_if_stale,
    log_scale,
    present,
    si_axis,
)
from analysis.site.facts.points import CASE_PREFIX
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import parse_case

ROLES: Final = {
    "ceiling": "limit",
    "step": "step",
    "beyond": "beyond the steps",
    "shipped": "shipped operator",
    "reference": "for comparison",
}
"""Words for roles, in the order of the rows. A limit is a tick, as its row says by itself."""
NO_KEY: Final = "none"
"""Value of a key in the cases without it, of variants that have it in others."""


def steps_chart(facts: StudyFacts) -> Chart | None:
    """A row a variant, with its interval; None if unmeasured.

    Bars are rates where the study's operations deliver bytes, else dots are times.
    """
    is_rate = facts.are_rates
    value = "rate" if is_rate else "seconds"
    points = default_points(facts)
    if is_rate:
        # What delivers no bytes has no rate; its times are for tables.
        points = points[points["payload_bytes"] > 0]
    # The page lists variants that no machine could run; a figure of a write-up is drawn.
    drawn = set(points.loc[points[value].notna(), "variant"])
    points = points[~points["variant"].isin(facts.unreached.keys() - drawn)]
    if not drawn:
        return None
    keys = varying_keys(points)
    points = clipped(with_keys(points, keys), value, ["machine", *keys])
    # A published figure is a second mark in the row of the variant.
    is_published = points["state"] == "published"
    share = [f" · {100 * one:.0f} %" if one == one else "" for one in points["share"]]
    points = points.assign(
        figure=(points["short"] + share).mask(is_published, ""),
        name=points["title"],
        kind=points["role"].map(ROLES),
        published=points[value].where(is_published),
        **{value: points[value].mask(is_published)},
    )
    x = alt.X("seconds:Q", title="time", scale=log_scale(), axis=si_axis("s"))
    if is_rate:
        scale = alt.Scale(zero=True)
        x = alt.X("rate:Q", title="payload rate, GB/s", scale=scale, stack=None)
    order = [variant.name for role in ROLES for variant in facts.study.with_role(role)]
    marks = [*_marks(points, x, is_rate=is_rate), *_limits(facts, value)]
    drawing = row_chart("variant", order, *marks, name="name", figure="figure")
    what = "payload rate in GB/s" if is_rate else "time"
    description = f"{what} of every variant in one case, with its {INTERVAL}."
    return Chart(drawing, points, description, BASIS_COLUMNS, case_selects(points, keys, facts))


def _marks(points: pd.DataFrame, x: alt.X, *, is_rate: bool) -> list[Any]:
    """A bar or a dot a figure, its interval or runs, and published figures."""
    base = alt.Chart().encode(x=x)
    steps = base.transform_filter("datum.role !== 'ceiling'")
    place: Any = {"yOffset": MARK_PX}
    bars = steps.mark_bar(height=11, **place)
    dots = steps.mark_point(filled=True, size=70, **place)
    kinds = [words for role, words in ROLES.items() if role != "ceiling"]
    legend = alt.Legend(title=None, values=present(kinds, points["kind"]))
    # A figure without an interval is drawn with its runs.
    runs = base.transform_filter("datum.by_run && !isValid(datum.begin)")
    runs = runs.transform_calculate(each=f"split(datum.by_run, '{RUN_SEPARATOR}')")
    runs = runs.transform_flatten(["each"]).transform_calculate(of_run="toNumber(datum.each)")
    runs = runs.mark_point(filled=True, size=12, color="gray", **place)
    marks = [
        (bars if is_rate else dots).encode(
            color=colour("kind", kinds, legend), opacity=faded_if_stale()
        ),
        base.transform_filter("datum.role === 'ceiling'").mark_tick(
            style="limit", thickness=3, height=12, **place
        ),
        base.mark_rule(strokeWidth=1.2, **place).encode(alt.X("begin:Q"), alt.X2("reach:Q")),
        runs.encode(x=alt.X("of_run:Q")),
    ]
    if points["published"].notna().any():
        diamonds = alt.Chart().mark_point(shape="diamond", size=70, strokeWidth=1.6, **place)
        marks.append(diamonds.encode(x=alt.X("published:Q"), color=alt.ColorValue("gray")))
    return marks


def _limits(facts: StudyFacts, value: str) -> list[Any]:
    """A thin tick in every row, below its name, at the fastest ceiling that bounds all steps."""
    bounding = [facts.study.ceilings_of(step) for step in facts.study.with_role("step")]
    ceilings = facts.study.with_role("ceiling")
    names = [one.name for one in ceilings if all(one in some for some in bounding)]
    if not names:
        return []
    limit = f"indexof({names}, datum.variant) >= 0 ? datum.{value} : null"
    fastest: Any = "max(bound)" if value == "rate" else "min(bound)"
    ticks = alt.Chart().transform_calculate(bound=limit).transform_joinaggregate(limit=fastest)
    ticks = ticks.transform_filter("isValid(datum.limit)")
    return [ticks.mark_tick(style="limit", height=15, yOffset=MARK_PX).encode(alt.X("limit:Q"))]


def default_points(facts: StudyFacts) -> pd.DataFrame:
    """Points by the clock by which each variant is compared, and those without a figure."""
    points = facts.points
    return points[(points["is_default"] == 1) | points["seconds"].isna()]


def varying_keys(points: pd.DataFrame) -> list[str]:
    """Columns of case keys with more than one value, or that some cases of a variant lack."""
    keys = [str(name) for name in points.columns if str(name).startswith(CASE_PREFIX)]
    return [key for key in keys if points[key].nunique() > 1 or _lacks(points, key).any()]


def _lacks(points: pd.DataFrame, key: str) -> pd.Series[Any]:
    """Rows without `key`, of variants that have it in other cases."""
    has_key = points[key].notna()
    return ~has_key & has_key.groupby(points["variant"]).transform("any")


def with_keys(points: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """`points` sorted by `keys`, with NO_KEY where a variant has a key in other cases only."""
    points = points.sort_values(list(keys), kind="stable") if keys else points
    for key in keys:
        if (lacking := _lacks(points, key)).any():
            points = points.assign(**{key: points[key].astype(object).mask(lacking, NO_KEY)})
    return points


def case_selects(points: pd.DataFrame, keys: Sequence[str], facts: StudyFacts) -> list[Select]:
    """A menu for each of `keys`, which begins at the headline case or, without the key there, at
    NO_KEY or the last value."""
    headline, selects = parse_case(facts.study.headline), []
    for key in keys:
        values, name = points[key].dropna(), key.removeprefix(CASE_PREFIX)
        if not values.empty:
            otherwise = NO_KEY if NO_KEY in set(values) else values.iloc[-1]
            selects.append(Select(key, name.replace("_", " "), headline.get(name, otherwise)))
    return selects


def cases_chart(facts: StudyFacts) -> Chart | None:
    """Lines along the number among a case's keys that has most values in the headline case: of the
    fastest ceiling, and of the steps that are fastest in most places.

    None where nothing is measured, or no key with numbers varies.
    """
    value = "rate" if facts.are_rates else "seconds"
    points = default_points(facts)
    points = points[points[value].notna() & (points["state"] != "published")]
    keys = varying_keys(points)
    headline = parse_case(facts.study.headline)

    def values(key: str) -> tuple[int, int]:
        """Number of values with all other keys as in the headline case, and in all cases."""
        usual = points
        for other in keys:
            wanted = headline.get(other.removeprefix(CASE_PREFIX))
            if other != key and wanted is not None:
                usual = usual[usual[other].isna() | (usual[other] == wanted)]
        return usual[key].nunique(), points[key].nunique()

    numbers = [key for key in keys if pd.api.types.is_numeric_dtype(points[key])]
    swept = max(numbers, key=values, default=None)
    if swept is None:
        return None
    others = [key for key in keys if key != swept]
    points = with_keys(points[points[swept].notna()], others)
    sizes = points.groupby("variant")[swept].nunique().to_dict()
    fastest = points.sort_values("seconds").drop_duplicates(["machine", swept, *others])
    wins = fastest["variant"].value_counts()
    ceilings = [one.name for one in facts.study.with_role("ceiling") if one.name in sizes]
    steps = [v.name for v in facts.study.with_role("step", "beyond") if sizes.get(v.name, 0) > 1]
    steps.sort(key=lambda name: -int(wins.get(name, 0)))
    names = [*ceilings[:1], *steps[: MAX_LINES - 1]]
    rows = points[points["variant"].isin(names)]
    label = swept.removeprefix(CASE_PREFIX).replace("_", " ")
    scale = log_scale() if rows[swept].min() > 0 else alt.Scale()
    x = alt.X(f"{swept}:Q", title=label, scale=scale)
    title = "payload rate, GB/s" if value == "rate" else "time"
    y = alt.Y(f"{value}:Q", title=title)
    if value == "seconds":
        y = y.scale(log_scale()).axis(si_axis("s"))
    description = f"{title} over {label}, a line a variant."
    columns, selects = {**BASIS_COLUMNS, "title": "what"}, case_selects(rows, others, facts)
    return line_chart(rows, x, y, "variant", names, description, columns, selects, intervals=True)
