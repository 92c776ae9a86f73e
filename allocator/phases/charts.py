"""Charts of the allocators: against PyTorch by pattern, single operations, the heap over time."""

from __future__ import annotations

from typing import Any, Final

import altair as alt
import pandas as pd

from analysis.api.charts import Chart, StudyFacts, dash_legend, finish, heat, select, si_axis
from analysis.api.quantities import quantity, ratio
from analysis.api.study import Speedup

PERCENTILES: Final = {
    "latency_p50": "50 %",
    "latency_p99": "99 %",
    "latency_p999": "99.9 %",
    "latency_max": "longest",
}
REFERENCE: Final = "torch_caching"


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`heat`, `journey` and `latency` from the results, `map` and `heap` from tables.py."""
    return {
        "heat": heat(facts, REFERENCE, "PyTorch"),
        "journey": journey(facts),
        "latency": latency(facts),
        "map": memory_map(facts),
        "heap": heap(facts),
    }


def journey(facts: StudyFacts) -> Chart | None:
    """The printed ratios and those measured at the same layer."""
    rows = []
    for claim in facts.study.claims:
        test = claim.tests[0] if len(claim.tests) == 1 else None
        if not isinstance(test, Speedup) or not test.of.startswith("published_"):
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
            x=alt.X(
                "ratio:Q", scale=alt.Scale(type="log"), title="PyTorch's time over the phase's"
            ),
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
    """Times of single operations by percentile."""
    rows = [
        {
            "machine": row.machine,
            "variant": row.variant,
            "pattern": row.case.removeprefix("pattern="),
            "percentile": PERCENTILES[row.metric],
            "seconds": row.median,
            "label": quantity(row.median, "s"),
        }
        for row in facts.figures.fresh(*PERCENTILES)
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
                axis=si_axis("s"),
                title="time of an operation",
            ),
            color=alt.Color("variant:N", legend=alt.Legend(title=None, orient="bottom")),
            strokeDash=alt.StrokeDash("pattern:N", legend=dash_legend("bottom", "pattern")),
            tooltip=["machine:N", "variant:N", "pattern:N", "percentile:N", "label:N"],
        )
        .properties(height=240)
        .facet(facet=alt.Facet("machine:N", title=None), columns=1, data=table)
        .add_params(select("pattern_shown", "pattern", patterns, None))
        .transform_filter("pattern_shown === null || datum.pattern === pattern_shown")
    )
    what = "Times of single operations by the share of operations that take no longer."
    return finish(chart, what, margin=70, compact_margin=60)


def of_one_pattern(facts: StudyFacts, name: str) -> tuple[pd.DataFrame, str] | None:
    """A derived table without the column of its pattern, and that pattern."""
    table = facts.derived(name)
    if table is None:
        return None
    return table.drop(columns="pattern"), str(table["pattern"].iloc[0])


def memory_map(facts: StudyFacts) -> Chart | None:
    """Address and lifetime of each allocation, with segments stacked in the order of creation."""
    if (found := of_one_pattern(facts, "memory_map")) is None:
        return None
    table, pattern = found
    table["size"] = [quantity(value, "B") for value in table["bytes"]]
    table["log"] = table["bytes"].map(lambda value: int(value).bit_length())
    blocks: Any = (
        alt.Chart(table)
        .mark_rect(stroke=None)
        .encode(
            x=alt.X("begin:Q", title="operation"),
            x2="end:Q",
            y=alt.Y("low:Q", title="address, segments stacked", axis=si_axis("B")),
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
    if (found := of_one_pattern(facts, "heap")) is None:
        return None
    table, pattern = found
    table["label"] = [quantity(value, "B") for value in table["bytes"]]
    chart: Any = (
        alt.Chart(table)
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("operation:Q", title="operation"),
            y=alt.Y("bytes:Q", title=None, axis=si_axis("B")),
            color=alt.Color("what:N", legend=alt.Legend(title=None, orient="bottom")),
            tooltip=["what:N", "operation:Q", "label:N"],
        )
        .properties(height=240)
    )
    what = f"Bytes asked for, and bytes each allocator has reserved, over the pattern {pattern}."
    return finish(chart, what, margin=80, compact_margin=70)
