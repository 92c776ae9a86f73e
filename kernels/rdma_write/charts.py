"""Charts of this study: rates over threads, the ladder of steps with the write-up's, the cache
lines of the counters, and the components of a write's time."""

from __future__ import annotations

import io
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

from analysis.charts.parts import part_bars, part_rows
from analysis.charts.theme import LABEL_LIMIT_PX, WIDE_LABELS, finish, panels, tooltip, variant_rows
from analysis.facts.points import Context
from analysis.quantities import quantity
from analysis.study import case_id, parse_case
from analysis.toolchain.compilers import find_toolchain

FOLDER = Path(__file__).parent
DRAWN = ("threads_shared_atomic", "sharded_array", "sharded_padded")
"""Variants that differ in the placement of their counters."""

LINE_BYTES = 64
PRINTED = "write-up"

PROBE = """
#include <array>
#include <atomic>
#include <cstdio>

#include "messages.h"

%s

Counters counters;

template <typename Member>
void tell(const char* name, const Member& member) {
  const auto offset = [](const void* at) {
    return static_cast<long>(static_cast<const char*>(at) - reinterpret_cast<char*>(&counters));
  };
  if constexpr (requires { member.size(); }) {
    for (size_t i = 0; i < member.size(); ++i) {
      std::printf("%%s[%%zu],%%ld,one thread\\n", name, i, offset(&member[i]));
    }
  } else {
    std::printf("%%s,%%ld,every thread\\n", name, offset(&member));
  }
}

template <typename T>
void tell_all(const T& all) {
  tell("posted", all.posted);
  tell("finished", all.finished);
  if constexpr (requires { all.finished_devices; }) {
    tell("finished_devices", all.finished_devices);
  }
}

int main() { tell_all(counters); }
"""


def charts(context: Context) -> dict[str, Any]:
    """`lines`, and `scaling`, `ladder` and `parts` if there is something to show."""
    made = {
        "scaling": scaling(context),
        "ladder": ladder(context),
        "lines": lines(context),
        "parts": parts(context),
    }
    return {name: chart for name, chart in made.items() if chart is not None}


def counter_fields(source: Path) -> pd.DataFrame:
    """The placement of a variant's counters: field, offset in B, and writer.

    A probe program compiles the structs at the top of the source and prints their offsets.
    """
    structs = re.findall(r"^struct .*?^};", source.read_text(), re.MULTILINE | re.DOTALL)
    toolchain = find_toolchain()
    with tempfile.TemporaryDirectory() as folder:
        probe = Path(folder, "probe")
        command = [toolchain.cxx, "-std=c++20", f"-I{FOLDER}", "-xc++", "-", "-o", str(probe)]
        code = PROBE % "\n\n".join(structs)
        subprocess.run(command, input=code, text=True, check=True, capture_output=True)
        told = subprocess.run([probe], check=True, capture_output=True, text=True).stdout
    return pd.read_csv(io.StringIO(told), names=["field", "offset", "writer"])


def lines(context: Context) -> Any:
    """The cache line of each counter, a panel per variant."""
    tables = []
    for name in DRAWN:
        table = counter_fields(context.study.variant(name).path)
        tables.append(table.assign(variant=name))
    table = pd.concat(tables, ignore_index=True)
    table["line"] = table["offset"] // LINE_BYTES
    table["first_byte"] = table["offset"] % LINE_BYTES
    table["last_byte"] = table["first_byte"] + 8
    table["shown"] = table["field"].str.replace("finished_devices", "devices")
    base = alt.Chart().encode(
        y=alt.Y("line:O", title="cache line", axis=alt.Axis(grid=False)),
        tooltip=[alt.Tooltip(f"{name}:N") for name in ("variant", "field", "offset", "writer")],
    )
    across = alt.X(
        "first_byte:Q",
        title="byte of the line",
        scale=alt.Scale(domain=[0, LINE_BYTES], nice=False),
        axis=alt.Axis(values=list(range(0, LINE_BYTES + 1, 8)), grid=True),
    )
    colour = alt.Color(
        "writer:N",
        title="written by",
        scale=alt.Scale(domain=["one thread", "every thread"]),
        legend=alt.Legend(orient="top"),
    )
    chart = (
        alt.layer(
            base.mark_rect(opacity=0.55).encode(x=across, x2="last_byte:Q", color=colour),
            base.mark_text(align="left", dx=2, fontSize=9, font=WIDE_LABELS).encode(
                x=across, text="shown:N"
            ),
        )
        .properties(height=alt.Step(15))
        .facet(facet=alt.Facet("variant:N", title=None, sort=list(DRAWN)), columns=1, data=table)
        .resolve_scale(y="independent")
        .resolve_axis(x="independent")
    )
    description = "Counters of three variants, each a box at its bytes of its cache line of 64 B."
    return finish(chart, description, margin=60, compact_margin=50)


def rates(context: Context) -> pd.DataFrame:
    """The measured points with `mpps`, `mpps_low`, `mpps_high`: millions of writes per second."""
    points = context.points
    points = points[points["seconds"].notna() & (points["state"] != "published")].copy()
    for name, seconds in (("mpps", "seconds"), ("mpps_low", "seconds_high"),
                          ("mpps_high", "seconds_low")):  # fmt: skip
        points[name] = 1e-6 / points[seconds]
    return points


def scaling(context: Context) -> Any:
    """Writes per second over threads, a line per variant, for the headline's page and provider."""
    points = rates(context)
    for key, value in parse_case(context.study.headline).items():
        if key != "threads":
            points = points[points[f"case_{key}"] == value]
    if points.empty:
        return None
    names = [name for name in context.study.variant_names if name in set(points["variant"])]
    base = alt.Chart().encode(
        x=alt.X("case_threads:O", title="threads on either side"),
        color=alt.Color(
            "variant:O",
            sort=names,
            scale=alt.Scale(domain=names),
            legend=alt.Legend(orient="bottom", title="steps in order", columns=3),
        ),
        tooltip=[*tooltip(context), alt.Tooltip("mpps:Q", title="Mpps", format=".3")],
        href="href:N",
    )
    y = alt.Y("mpps:Q", title="writes, Mpps", scale=alt.Scale(zero=True))
    chart = panels(
        alt.layer(
            base.mark_line().encode(y=y, detail="variant:N"),
            base.mark_rule().encode(y=alt.Y("mpps_low:Q", title="writes, Mpps"), y2="mpps_high:Q"),
            base.mark_point(filled=True, size=40, cursor="pointer").encode(y=y),
        ).properties(height=300),
        points,
    )
    description = f"{context.study.title}: millions of writes a second over threads."
    return finish(chart, description, margin=70, compact_margin=60)


def ladder(context: Context) -> Any:
    """Each step's rate relative to the first step: the write-up's, and those of every machine."""
    steps = [variant.name for variant in context.study.with_role("step", "beyond")]
    shown = rates(context)
    shown = shown[shown["case"] == case_id(parse_case(context.study.headline))]
    rows = [(row.machine, row.variant, row.seconds) for row in shown.itertuples()]
    published = context.inputs.published[context.study.name]
    rows += [(PRINTED, row.variant, row.seconds) for row in published.itertuples()]
    table = pd.DataFrame(rows, columns=["machine", "variant", "seconds"])
    first = table[table["variant"] == steps[0]].set_index("machine")["seconds"]
    table["times_first"] = table["machine"].map(first) / table["seconds"]
    table = table.dropna(subset="times_first").drop(columns="seconds")
    if table.empty:
        return None
    table["factor"] = table["times_first"].map("{:.2f}".format)
    machines = [*context.machines, PRINTED]
    base = alt.Chart(table).encode(
        y=alt.Y(
            "variant:N",
            sort=steps,
            title=None,
            axis=alt.Axis(labelFont=WIDE_LABELS, labelLimit=LABEL_LIMIT_PX, grid=True),
        ),
        color=alt.Color(
            "machine:N",
            scale=alt.Scale(domain=machines),
            legend=alt.Legend(orient="top", title=None),
        ),
        tooltip=[alt.Tooltip(f"{name}:N") for name in ("variant", "machine", "factor")],
    )
    x = alt.X("times_first:Q", title=f"rate over that of {steps[0]}", scale=alt.Scale(type="log"))
    shape = alt.Shape(
        "machine:N",
        scale=alt.Scale(domain=machines, range=["circle"] * len(context.machines) + ["diamond"]),
    )
    chart = base.mark_point(size=80, filled=True).encode(x=x, shape=shape)
    description = (
        f"{context.study.title}: each step's rate over the first step's, as published and measured."
    )
    return finish(chart.properties(height=25 * len(steps)), description, 200, 190)


def parts(context: Context) -> Any:
    """The components of a write, stacked, with a tick at the time of the whole write."""
    rows = part_rows(context)
    if rows.empty:
        return None
    keys = rows[["machine", "variant", "case"]].itertuples(index=False, name=None)
    timed = [float(context.summary[*key, "op_time"]["median"]) * 1e9 for key in keys]
    threads = [parse_case(case)["threads"] for case in rows["case"]]
    rows = rows.assign(ns=rows["seconds"] * 1e9, timed=timed, threads=threads)
    rows["time"] = [quantity(seconds, "s") for seconds in rows["seconds"]]
    rows = rows.drop(columns=["seconds", "whole"])
    told = {
        **{name: name for name in ("variant", "machine", "threads", "part", "time", "state")},
        "timed": "timed as a whole, ns",
    }
    row = variant_rows(context.study.variant_names, rows)
    bars = part_bars(context, rows, alt.X("ns:Q", title="ns a write", stack="zero"), row, told)
    whole = (
        alt.Chart()
        .transform_filter("datum.order === 0")
        .mark_tick(thickness=2, size=21, style="interval")
        .encode(x=alt.X("timed:Q", title="ns a write"), y=row)
    )
    layers = alt.layer(bars, whole).properties(height=25 * rows["variant"].nunique())
    description = f"{context.study.title}: calls of the provider and our own part of a write."
    return finish(panels(layers, rows), description, margin=200, compact_margin=190)
