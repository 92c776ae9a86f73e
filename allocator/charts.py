"""Charts of the allocators: against PyTorch by pattern, single operations, and the heap over time.

Placement does not depend on a GPU: the heap charts run the built allocator over a source that only
counts bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Final

import altair as alt
import pandas as pd
from scipy.stats import gmean

from analysis import ROOT
from analysis.charts.theme import CELL_PX, Chart, finish, select
from analysis.facts.points import Context
from analysis.modules import load_module
from analysis.quantities import INTERVAL, quantity, ratio, ratio_interval
from analysis.study import Study

from .patterns import PATTERNS, MissingTrace

REFERENCE: Final = "torch_caching"
MEAN: Final = "geometric mean"
UNPAIRED: Final = "none, of two medians"
PERCENTILES: Final = {
    "latency_p50": "50 %",
    "latency_p99": "99 %",
    "latency_p999": "99.9 %",
    "latency_max": "longest",
}
MAPPED: Final = ("trace_transformer_training", "gradient_accumulation")
"""The first of these patterns that is available is drawn as a map."""
GPU_BYTES: Final = 79 * 2**30
POINTS: Final = 400
"""Number of points in time at which the heap is sampled."""


def charts(context: Context) -> dict[str, Chart]:
    """`heat`, `journey` and `latency` from the results, `map` and `heap` from built modules."""
    made = {
        "heat": heat(context),
        "journey": journey(context),
        "latency": latency(context),
        "map": memory_map(context.study),
        "heap": heap(context.study),
    }
    return {name: chart for name, chart in made.items() if chart is not None}


def _seconds(context: Context) -> pd.DataFrame:
    """Median op_time by machine, variant and pattern, for the cases replayed in C++."""
    rows = [
        {"machine": machine, "variant": variant, "pattern": case.removeprefix("pattern="), **row}
        for (machine, variant, case, metric), row in context.summary.items()
        if metric == "op_time" and "." not in case and not row["stale"]
    ]
    columns = ["machine", "variant", "pattern", "median"]
    return pd.DataFrame(rows, columns=columns).rename(columns={"median": "seconds"})


def heat(context: Context) -> Chart | None:
    """PyTorch's time over each allocator's, by pattern; paired by rounds where they were
    compared."""
    table = _seconds(context)
    theirs = table[table["variant"] == REFERENCE][["machine", "pattern", "seconds"]]
    table = table[table["variant"] != REFERENCE]
    table = table.merge(theirs, on=["machine", "pattern"], suffixes=("", "_torch"))
    if table.empty:
        return None
    table = pd.concat([table, pd.DataFrame(_ratios(context, table))], axis="columns")
    table = pd.concat([table, _means(table)])
    table["label"] = [ratio(value) for value in table["ratio"]]
    table["time"] = [quantity(value, "s") for value in table["seconds"]]
    table["torch"] = [quantity(value, "s") for value in table["seconds_torch"]]
    patterns = [*dict.fromkeys(_patterns(context.study)), MEAN]
    names = [v for v in context.study.variant_names if v in set(table["variant"])]
    base: Any = alt.Chart().encode(
        x=alt.X("variant:N", sort=names, title=None, axis=alt.Axis(labelAngle=-40)),
        y=alt.Y("pattern:N", sort=patterns, title=None),
    )
    colour = alt.Color(
        "ratio:Q",
        scale=alt.Scale(type="log", domain=[0.01, 1, 30], range=["#b03a3a", "#8a8f98", "#0a8f72"]),
        legend=alt.Legend(title="PyTorch's time over its own", orient="bottom", format="~g"),
    )
    cells = base.mark_rect().encode(
        color=colour,
        tooltip=[
            *("machine:N", "pattern:N", "variant:N"),
            alt.Tooltip("label:N", title="times as fast as PyTorch"),
            *(alt.Tooltip("interval:N", title=INTERVAL), "time:N", "torch:N"),
        ],
    )
    chart = (
        alt.layer(cells, base.mark_text(fontSize=10, color="white").encode(text="label:N"))
        .properties(height=16 * table["pattern"].nunique())
        .facet(facet=alt.Facet("machine:N", title=None), columns=1, data=table)
    )
    what = (
        "How many times as fast as PyTorch each allocator is, in every pattern, on every machine."
    )
    return finish(chart, what, margin=180, compact_margin=150, least=CELL_PX * len(names))


def _ratios(context: Context, table: pd.DataFrame) -> Iterator[dict[str, object]]:
    """`ratio` and `interval` of each row of `table`.

    Variants that are compared with PyTorch are paired by rounds; for other references the ratio is
    that of two medians.
    """
    for row in table.to_dict("records"):
        case = f"pattern={row['pattern']}"
        paired = context.ratios.get((row["machine"], row["variant"], REFERENCE, case, "op_time"))
        if paired is None:
            yield {"ratio": row["seconds_torch"] / row["seconds"], "interval": UNPAIRED}
        else:
            interval = ratio_interval(float(paired["ci_low"]), float(paired["ci_high"]))
            yield {"ratio": paired["ratio"], "interval": interval}


def _means(table: pd.DataFrame) -> pd.DataFrame:
    """The geometric mean of the ratios, for each variant with all of PyTorch's patterns."""
    groups = table.groupby(["machine", "variant"])
    means = groups.agg(ratio=("ratio", gmean), count=("pattern", "nunique")).reset_index()
    full = means[means["count"] == table["pattern"].nunique()]
    return full.drop(columns="count").assign(pattern=MEAN, interval="")


def _patterns(study: Study) -> Iterator[str]:
    for variant in study.variants:
        for case in variant.cases:
            yield str(case["pattern"]).rpartition(".")[2]


def journey(context: Context) -> Chart | None:
    """The printed ratios and those measured at the same layer."""
    rows = []
    for claim in context.study.claims:
        if len(claim.tests) != 1 or "pattern=storage." not in claim.tests[0].case:
            continue
        if claim.tests[0].kind != "speedup" or not str(claim.tests[0].of).startswith("seed_"):
            continue
        for row in context.claims.get(claim.id, []):
            phase = context.study.variant(str(claim.tests[0].of)).title.removeprefix("In Python: ")
            pattern = claim.tests[0].case.removeprefix("pattern=storage.")
            common = {"machine": row["machine"], "phase": phase, "pattern": pattern}
            rows.append(common | {"source": "printed", "ratio": row["published"]})
            rows.append(common | {"source": str(row["machine"]), "ratio": row["measured"]})
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


def latency(context: Context) -> Chart | None:
    """Times of single operations, by percentile."""
    rows = [
        {
            "machine": machine,
            "variant": variant,
            "pattern": case.removeprefix("pattern="),
            "percentile": PERCENTILES[metric],
            "seconds": row["median"],
            "label": quantity(float(row["median"]), "s"),
        }
        for (machine, variant, case, metric), row in context.summary.items()
        if metric in PERCENTILES and not row["stale"]
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
    """A legend of strokes, because dashes are not visible in the lines' point symbols."""
    return alt.Legend(
        orient="bottom",
        symbolType="stroke",
        symbolSize=300,
        symbolFillColor="transparent",  # a symbol without any fill is drawn without a stroke, too
    )


def built(study: Study, name: str) -> Any | None:
    """The module of a variant, built for any architecture; None if it has not been built."""
    for path in sorted(ROOT.glob(f"build/modules/*/{study.name}/{name}.so")):
        return load_module(path.parent.parent, study, study.variant(name))
    return None


@functools.cache
def mapped_tape() -> tuple[str, list[list[int]]]:
    """Name and tape of the pattern that is drawn."""
    for name in MAPPED:
        try:
            return name, PATTERNS[name]().tapes[0].tolist()
        except MissingTrace:
            continue
    raise AssertionError("the last of MAPPED is no trace")


def memory_map(study: Study) -> Chart | None:
    """The place and lifetime of each allocation, with segments stacked in order of creation."""
    module = built(study, "p4_final")
    if module is None:
        return None
    pattern, tape = mapped_tape()
    source = module.HostSource(GPU_BYTES)
    allocator = module.Allocator(source)
    bases: dict[int, int] = {}
    top = 0
    slots: dict[int, tuple[int, int, int]] = {}
    rows = []
    for step, (kind, slot, size, _) in enumerate(tape):
        if kind == 0:
            slots[slot] = (allocator.allocate(size), size, step)
            segments = {block["segment"] for block in allocator.snapshot()} - set(bases)
            for segment in sorted(segments):
                room = sum(b["size"] for b in allocator.snapshot() if b["segment"] == segment)
                bases[segment], top = top, top + room
        elif kind == 1:
            pointer, size, begin = slots.pop(slot)
            segment = max(base for base in bases if base <= pointer)
            low = bases[segment] + pointer - segment
            rows.append(
                {"begin": begin, "end": step, "low": low, "high": low + size, "bytes": size}
            )
            allocator.free(pointer)
    table = pd.DataFrame(rows)
    table["size"] = [quantity(value, "B") for value in table["bytes"]]
    table["log"] = table["bytes"].map(lambda value: value.bit_length())
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


def heap(study: Study) -> Chart | None:
    """Bytes reserved and bytes requested, over the same pattern."""
    rows = []
    for name in ("p1_exact_cache", "p3_block_pool", "p4_final"):
        module = built(study, name)
        if module is None:
            return None
        pattern, tape = mapped_tape()
        source = module.HostSource(GPU_BYTES)
        allocator = module.Allocator(source)
        slots: dict[int, tuple[int, int]] = {}
        every, asked = max(1, len(tape) // POINTS), 0
        for step, (kind, slot, size, _) in enumerate(tape):
            if kind == 0:
                slots[slot] = allocator.allocate(size), size
                asked += size
            elif kind == 1:
                pointer, freed = slots.pop(slot)
                allocator.free(pointer)
                asked -= freed
            if step % every == 0:
                reserved = source.counts()["reserved"]
                rows.append({"operation": step, "what": f"reserved by {name}", "bytes": reserved})
                if name == "p4_final":
                    rows.append({"operation": step, "what": "asked for", "bytes": asked})
    table = pd.DataFrame(rows)
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
