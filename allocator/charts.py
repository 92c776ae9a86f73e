"""Charts of the allocators: against PyTorch by pattern, single operations, the heap over time."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from statistics import geometric_mean
from typing import Any, Final

import altair as alt
import pandas as pd

from analysis.charts.theme import CELL_PX, Chart, finish, select
from analysis.claims.kinds import Speedup
from analysis.facts.study_facts import StudyFacts
from analysis.quantities import INTERVAL, quantity, ratio, ratio_interval
from analysis.study import Study

REFERENCE: Final = "torch_caching"
MEAN: Final = "geometric mean"
PERCENTILES: Final = {
    "latency_p50": "50 %",
    "latency_p99": "99 %",
    "latency_p999": "99.9 %",
    "latency_max": "longest",
}


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`heat`, `journey` and `latency` from the results, `map` and `heap` from tables.py."""
    return {
        "heat": heat(facts),
        "journey": journey(facts),
        "latency": latency(facts),
        "map": memory_map(facts),
        "heap": heap(facts),
    }


def _seconds(facts: StudyFacts) -> pd.DataFrame:
    """Median op_time by machine, variant and pattern, of the cases replayed in C++."""
    names = {variant.name for variant in facts.study.subjects}
    rows = [
        (row.machine, row.variant, row.case.removeprefix("pattern="), row.median)
        for row in facts.figures.measured.values()
        if row.metric == "op_time" and "." not in row.case and not row.stale
        if row.variant in names
    ]
    return pd.DataFrame(rows, columns=["machine", "variant", "pattern", "seconds"])


def heat(facts: StudyFacts) -> Chart | None:
    """PyTorch's time over each allocator's, by pattern, paired by rounds."""
    table = _seconds(facts)
    theirs = table[table["variant"] == REFERENCE][["machine", "pattern", "seconds"]]
    table = table[table["variant"] != REFERENCE]
    table = table.merge(theirs, on=["machine", "pattern"], suffixes=("", "_torch"))
    table = pd.DataFrame(_ratios(facts, table))
    if table.empty:
        return None
    table = pd.concat([table, _means(table)])
    table["label"] = [ratio(value) for value in table["ratio"]]
    table["time"] = [quantity(value, "s") for value in table["seconds"]]
    table["torch"] = [quantity(value, "s") for value in table["seconds_torch"]]
    colour = alt.Color(
        "ratio:Q",
        scale=worse_to_better(0.01, 1, 30),
        legend=alt.Legend(title="PyTorch's time over its own", orient="bottom", format="~g"),
    )
    tooltip = [
        alt.Tooltip("label:N", title="times as fast as PyTorch"),
        *(alt.Tooltip("interval:N", title=INTERVAL), "time:N", "torch:N"),
    ]
    what = (
        "How many times as fast as PyTorch each allocator is, in every pattern, on every machine."
    )
    return by_pattern(facts.study, table, colour, tooltip, what)


def worse_to_better(worst: float, even: float, best: float) -> alt.Scale:
    """Colours of the cells, from red over grey to green, that go with either palette."""
    ends = {worst: "#b03a3a", even: "#8a8f98", best: "#0a8f72"}
    domain = sorted(ends)
    return alt.Scale(type="log", domain=domain, range=[ends[at] for at in domain], clamp=True)


def by_pattern(
    study: Study, table: pd.DataFrame, colour: alt.Color, tooltip: Sequence[Any], what: str
) -> Chart:
    """A cell for each row of `table`, by its `pattern` and `variant`, with its `label`."""
    names = [name for name in study.variant_names if name in set(table["variant"])]
    base: Any = alt.Chart().encode(
        x=alt.X("variant:N", sort=names, title=None, axis=alt.Axis(labelAngle=-40)),
        y=alt.Y("pattern:N", sort=[*dict.fromkeys(_patterns(study)), MEAN], title=None),
    )
    cells = base.mark_rect().encode(
        color=colour, tooltip=["machine:N", "pattern:N", "variant:N", *tooltip]
    )
    chart = (
        alt.layer(cells, base.mark_text(fontSize=10, color="white").encode(text="label:N"))
        .properties(height=16 * table["pattern"].nunique())
        .facet(facet=alt.Facet("machine:N", title=None), columns=1, data=table)
    )
    return finish(chart, what, margin=180, compact_margin=150, least=CELL_PX * len(names))


def _ratios(facts: StudyFacts, table: pd.DataFrame) -> Iterator[dict[Hashable, object]]:
    """The rows of `table` that some run has beside PyTorch's, with `ratio` and `interval`."""
    for row in table.to_dict("records"):
        case = f"pattern={row['pattern']}"
        paired = facts.figures.ratios.get(
            (row["machine"], row["variant"], REFERENCE, case, "op_time")
        )
        if paired is not None:
            interval = ratio_interval(paired.ci_low, paired.ci_high)
            yield {**row, "ratio": paired.ratio, "interval": interval}


def _means(table: pd.DataFrame) -> pd.DataFrame:
    """The geometric mean of the ratios of each variant that has all patterns PyTorch has."""
    groups = table.groupby(["machine", "variant"])
    means = groups.agg(ratio=("ratio", geometric_mean), count=("pattern", "nunique")).reset_index()
    full = means[means["count"] == table["pattern"].nunique()]
    return full.drop(columns="count").assign(pattern=MEAN, interval="")


def _patterns(study: Study) -> Iterator[str]:
    for variant in study.variants:
        for case in variant.cases:
            yield str(case["pattern"]).rpartition(".")[2]


def journey(facts: StudyFacts) -> Chart | None:
    """The printed ratios and those measured at the same layer."""
    rows = []
    for claim in facts.study.claims:
        test = claim.tests[0] if len(claim.tests) == 1 else None
        if not isinstance(test, Speedup) or not test.of.startswith("seed_"):
            continue
        pattern = test.case.removeprefix("pattern=storage.")
        if pattern == test.case:
            continue
        for row in facts.verdicts.by_claim.get(claim.id, []):
            phase = facts.study.variant(test.of).title.removeprefix("In Python: ")
            place = (row.machine, phase, pattern)
            called = facts.inputs.called(row.machine)
            rows += [(*place, "printed", row.published), (*place, called, row.measured)]
    table = pd.DataFrame(rows, columns=["machine", "phase", "pattern", "source", "ratio"])
    table = table.dropna(subset="ratio").drop_duplicates(["phase", "pattern", "source"])
    if table.empty:
        return None
    table["label"] = [ratio(value) for value in table["ratio"]]
    phases = list(dict.fromkeys(table["phase"]))
    chart: Any = (
        alt.Chart(table)
        .mark_point(filled=True, size=70, opacity=0.85)
        .encode(
            x=alt.X("ratio:Q", scale=alt.Scale(type="log"), title="PyTorch's time over its own"),
            y=alt.Y("pattern:N", title=None),
            color=alt.Color("source:N", legend=alt.Legend(title=None, orient="bottom")),
            shape=alt.Shape("source:N", legend=None),
            tooltip=["phase:N", "pattern:N", "source:N", alt.Tooltip("label:N", title="ratio")],
        )
        .properties(height=150)
        .facet(facet=alt.Facet("phase:N", title=None, sort=phases), columns=1)
    )
    what = "PyTorch's time over that of each phase in Python, as printed and as measured."
    return finish(chart, what, margin=180, compact_margin=150)


def latency(facts: StudyFacts) -> Chart | None:
    """How long single operations take, by percentile."""
    rows = [
        {
            "machine": row.machine,
            "variant": row.variant,
            "pattern": row.case.removeprefix("pattern="),
            "percentile": PERCENTILES[row.metric],
            "seconds": row.median,
            "label": quantity(row.median, "s"),
        }
        for row in facts.figures.measured.values()
        if row.metric in PERCENTILES and not row.stale
    ]
    if not rows:
        return None
    table = pd.DataFrame(rows)
    patterns = [None, *sorted(table["pattern"].unique())]
    chart: Any = (
        alt.Chart()
        .mark_line(point=True)
        .encode(
            x=alt.X("percentile:N", sort=list(PERCENTILES.values()), title="share of operations"),
            y=alt.Y(
                "seconds:Q",
                scale=alt.Scale(type="log"),
                axis=alt.Axis(labelExpr="format(datum.value, '~s') + 's'"),
                title="time of an operation",
            ),
            color=alt.Color("variant:N", legend=alt.Legend(title=None, orient="bottom")),
            strokeDash=alt.StrokeDash("pattern:N", legend=_dashes()),
            tooltip=["machine:N", "variant:N", "pattern:N", "percentile:N", "label:N"],
        )
        .properties(height=240)
        .facet(facet=alt.Facet("machine:N", title=None), columns=1, data=table)
        .add_params(select("pattern_shown", "pattern", patterns, None))
        .transform_filter("pattern_shown === null || datum.pattern === pattern_shown")
    )
    what = "Times of single operations by the share of operations that take no longer."
    return finish(chart, what, margin=70, compact_margin=60)


def _dashes() -> alt.Legend:
    """A legend of strokes: in the points of the lines, as symbols, no dash would be seen."""
    return alt.Legend(
        orient="bottom",
        symbolType="stroke",
        symbolSize=300,
        symbolFillColor="transparent",  # what has no fill at all is drawn without a stroke too
    )


def memory_map(facts: StudyFacts) -> Chart | None:
    """Where each allocation lies, from when until when: segments stacked in the order they come."""
    table = facts.derived("memory_map")
    if table is None:
        return None
    pattern = table["pattern"].iloc[0]
    table = table.drop(columns="pattern")
    table["size"] = [quantity(value, "B") for value in table["bytes"]]
    table["log"] = table["bytes"].map(lambda value: int(value).bit_length())
    blocks: Any = (
        alt.Chart(table)
        .mark_rect(stroke=None)
        .encode(
            x=alt.X("begin:Q", title="operation"),
            x2="end:Q",
            y=alt.Y("low:Q", title="address, segments stacked", axis=_bytes_axis()),
            y2="high:Q",
            color=alt.Color("log:O", legend=None),
            tooltip=["size:N", "begin:Q", "end:Q"],
        )
        .properties(height=320)
    )
    what = f"The heap over the pattern {pattern}: a rectangle an allocation, as long as it lives."
    return finish(blocks, what, margin=80, compact_margin=70)


def heap(facts: StudyFacts) -> Chart | None:
    """Bytes reserved and bytes asked for, over the same pattern."""
    table = facts.derived("heap")
    if table is None:
        return None
    pattern = table["pattern"].iloc[0]
    table = table.drop(columns="pattern")
    table["label"] = [quantity(value, "B") for value in table["bytes"]]
    chart: Any = (
        alt.Chart(table)
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("operation:Q", title="operation"),
            y=alt.Y("bytes:Q", title=None, axis=_bytes_axis()),
            color=alt.Color("what:N", legend=alt.Legend(title=None, orient="bottom")),
            tooltip=["what:N", "operation:Q", "label:N"],
        )
        .properties(height=240)
    )
    what = f"Bytes asked for, and bytes each allocator has reserved, over the pattern {pattern}."
    return finish(chart, what, margin=80, compact_margin=70)


def _bytes_axis() -> alt.Axis:
    return alt.Axis(labelExpr="format(datum.value, '~s') + 'B'")
