"""Charts of the allocators: against PyTorch by pattern, single operations, the heap over time."""

from __future__ import annotations

from typing import Final

import altair as alt
import pandas as pd

from allocator.pattern_charts import heat
from analysis.api.charts import (
    HEIGHT_PX,
    MARK_PX,
    Chart,
    Select,
    StudyFacts,
    colour,
    log_scale,
    present,
    row_chart,
    si_axis,
)
from analysis.api.quantities import quantity, ratio

PERCENTILES: Final = {"latency_p50": 50, "latency_p99": 99, "latency_p999": 99.9}
REFERENCE: Final = "torch_caching"
TIMED: Final = ("torch_caching", "p1_exact_cache", "p4_final", "p5_dropin", "cuda_malloc_async")
"""Variants whose single operations are compared."""
MAX_BLOCKS: Final = 500
"""Largest allocations that the memory map shows."""


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
        if test is None or test.kind != "speedup" or not test.of.startswith("published_"):
            continue
        pattern = test.case.removeprefix("pattern=storage.")
        if pattern == test.case:
            continue
        for row in facts.verdicts.by_claim.get(claim.id, []):
            phase = facts.study.variant(test.of).title.removeprefix("In Python: ")
            called = facts.inputs.called(row.machine)
            rows += [
                (phase, pattern, "printed", row.published),
                (phase, pattern, called, row.measured),
            ]
    table = pd.DataFrame(rows, columns=["phase", "pattern", "source", "ratio"])
    table = table.dropna(subset="ratio").drop_duplicates(["phase", "pattern", "source"])
    if table.empty:
        return None
    table = table.assign(
        label=table["ratio"].map(ratio), row=table["phase"] + ": " + table["pattern"]
    )
    sources = list(dict.fromkeys(table["source"]))
    marks = alt.Chart().mark_point(filled=True, size=60, opacity=0.85, yOffset=MARK_PX)
    marks = marks.encode(
        x=alt.X("ratio:Q", scale=log_scale(), title="PyTorch's time over the phase's"),
        color=colour("source", sources, alt.Legend(title=None)),
    )
    columns = {"row": "phase", "source": "source", "label": "ratio"}
    what = f"{facts.study.title}: PyTorch's time over that of each phase in Python."
    drawing = row_chart("row", list(dict.fromkeys(table["row"])), marks)
    return Chart(drawing, table, what, columns)


def latency(facts: StudyFacts) -> Chart | None:
    """Times of single operations by percentile."""
    rows = [
        {
            "machine": row.machine,
            "variant": row.variant,
            "pattern": row.case.removeprefix("pattern="),
            "percentile": f"{PERCENTILES[row.metric]:g} %",
            "seconds": row.median,
            "label": quantity(row.median, "s"),
        }
        for row in facts.fresh(*PERCENTILES)
        if row.variant in TIMED
    ]
    if not rows:
        return None
    table = pd.DataFrame(rows).sort_values(["pattern", "percentile"])
    titles = {variant.name: variant.title for variant in facts.study.variants}
    table = table.assign(row=table["variant"].map(titles))
    shares = [f"{share:g} %" for share in PERCENTILES.values()]
    marks = alt.Chart().mark_point(filled=True, size=60, yOffset=MARK_PX)
    marks = marks.encode(
        x=alt.X("seconds:Q", scale=log_scale(), axis=si_axis("s"), title="time of an operation"),
        color=colour("percentile", shares, alt.Legend(title="share of operations that are faster")),
    )
    columns = {
        "variant": "variant",
        "pattern": "pattern",
        "percentile": "faster operations",
        "label": "time",
    }
    what = f"{facts.study.title}: times of single operations by the share that take no longer."
    order = present([titles[name] for name in TIMED if name in titles], table["row"])
    return Chart(
        row_chart("row", order, marks), table, what, columns, [Select("pattern", "pattern")]
    )


def of_one_pattern(facts: StudyFacts, name: str) -> tuple[pd.DataFrame, str] | None:
    """A derived table without the column of its pattern, and that pattern."""
    table = facts.derived(name)
    if table is None:
        return None
    return table.drop(columns="pattern"), str(table["pattern"].iloc[0])


def memory_map(facts: StudyFacts) -> Chart | None:
    """Address and lifetime of the largest allocations, with segments stacked."""
    if (found := of_one_pattern(facts, "memory_map")) is None:
        return None
    table, pattern = found
    table = table.nlargest(MAX_BLOCKS, "bytes")
    table = table.assign(
        size=[quantity(value, "B") for value in table["bytes"]],
        log=table["bytes"].map(lambda value: int(value).bit_length()),
    )
    blocks = alt.Chart().mark_rect(stroke=None)
    blocks = blocks.encode(
        x=alt.X("begin:Q", title="operation"),
        x2="end:Q",
        y=alt.Y("low:Q", title="address, segments stacked", axis=si_axis("B")),
        y2="high:Q",
        color=alt.Color("log:O", legend=None),
    ).properties(height=HEIGHT_PX)
    what = f"The heap over the pattern {pattern}: a rectangle an allocation, as long as it lives."
    columns = {"size": "size", "begin": "allocated at", "end": "freed at"}
    return Chart(blocks, table, what, columns)


def heap(facts: StudyFacts) -> Chart | None:
    """Bytes reserved and bytes asked for, over the same pattern."""
    if (found := of_one_pattern(facts, "heap")) is None:
        return None
    table, pattern = found
    table = table.assign(label=[quantity(value, "B") for value in table["bytes"]])
    names = list(dict.fromkeys(table["what"]))
    steps = alt.Chart().mark_line(interpolate="step-after")
    steps = steps.encode(
        x=alt.X("operation:Q", title="operation"),
        y=alt.Y("bytes:Q", title=None, axis=si_axis("B")),
        color=colour("what", names, alt.Legend(title=None, columns=1)),
    ).properties(height=HEIGHT_PX)
    what = f"Bytes asked for, and bytes each allocator has reserved, over the pattern {pattern}."
    return Chart(steps, table, what, {"what": "what", "operation": "operation", "label": "bytes"})
