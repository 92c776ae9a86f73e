"""Picture of the main result: payload rates over the size of the pool, on one machine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pandas as pd

from analysis.api.charts import StudyFacts, chips, machines_by_evidence
from analysis.api.drawings import Canvas, Drawing
from analysis.api.model import ENTRY_BYTES
from analysis.api.quantities import digits
from analysis.api.study import parse_case

CLOCK, CEILING = "host_time", "ceiling_copy_engine"
"""The one clock that includes the work of the CPU, and the variant that shows the link's limit."""
MIB_PER_GIB = 1024
MODEL_POOLS_MIB: Final = tuple(188 * 2 ** (k / 4) for k in range(32))


@dataclass(frozen=True)
class Series:
    """A line: a variant, and the layouts of its rows, the first measured one of each pool."""

    name: str
    variant: str
    layouts: tuple[str, ...]
    kind: str


# Rows without repeats, where a pool is so small that random rows repeat.
SERIES: Final = (
    Series("scattered", "loads_first", ("distinct", "scattered"), "second"),
    Series("four together", "loads_first", ("pages_4",), "third"),
    Series("CPU + GPU", "both_engines", ("distinct", "scattered"), "first"),
)


@dataclass(frozen=True)
class Rate:
    """GB/s at a size of the pool, with the ends of its interval or NaN."""

    pool_gib: float
    rate: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class Line:
    """Measured rates of a series, and the model's, none for the CPU; by size of the pool."""

    series: Series
    measured: Sequence[Rate]
    modelled: Sequence[Rate]

    @property
    def end(self) -> Rate:
        return self.measured[-1]


@dataclass(frozen=True)
class Picture:
    """Everything that is drawn. `reach_gib` is NaN if it was not calibrated."""

    called: str
    lines: Sequence[Line]
    ceiling: float
    reach_gib: float

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest pool."""
        sizes = [rate.pool_gib for line in self.lines for rate in line.measured]
        return min(sizes), max(sizes)

    @property
    def words(self) -> str:
        """The figures for readers without the picture."""
        lines = [
            f"{line.series.name}: "
            + ", ".join(f"{_size(one.pool_gib)} {digits(one.rate)}" for one in line.measured)
            for line in self.lines
        ]
        return f"On {self.called}, in GB/s. {'; '.join(lines)}; limit {digits(self.ceiling)}."


def pool_sizes(facts: StudyFacts) -> Drawing | None:
    """The picture of the machine with most evidence; None without results."""
    found = next(filter(None, (_read(facts, one) for one in machines_by_evidence(facts))), None)
    if found is None:
        return None
    title = "Payload rate of a gather over the size of the pool"
    return Drawing(title, found.words, lambda canvas: _draw(canvas, found))


def _read(facts: StudyFacts, machine: str) -> Picture | None:
    points = facts.points
    rows = int(parse_case(facts.study.headline)["rows"])
    is_shown = (points["machine"] == machine) & (points["metric"] == CLOCK)
    is_fresh = (points["state"] == "measured") & points["case_pause_ms"].isna()
    points = points[is_shown & is_fresh & (points["case_rows"] == rows)]
    points = points[points["case_beside"].isna()]
    measured = {series: list(_rates(points, series)) for series in SERIES}
    limits = points[points["variant"] == CEILING]["rate"]
    lines = [
        Line(series, rates, _modelled(facts, machine, series))
        for series, rates in measured.items()
        if rates
    ]
    if limits.empty or len(lines) < len(SERIES):
        return None
    known = chips(facts.inputs).get(machine)
    held = known.parameters.held_entries if known else math.nan
    reach = held * ENTRY_BYTES / 2**30
    return Picture(facts.inputs.called(machine), lines, float(limits.median()), reach)


def _rates(points: pd.DataFrame, series: Series) -> Iterator[Rate]:
    """The rates of a series, by size of the pool."""
    of_series = points[points["variant"] == series.variant]
    for pool in sorted(of_series["case_pool_mib"].unique()):
        by_layout = of_series[of_series["case_pool_mib"] == pool].set_index("case_layout")
        layout = next(filter(by_layout.index.__contains__, series.layouts), None)
        if layout is not None:
            values = by_layout.loc[layout, ["rate", "rate_low", "rate_high"]]
            yield Rate(float(pool) / MIB_PER_GIB, *map(float, values))


def _modelled(facts: StudyFacts, machine: str, series: Series) -> list[Rate]:
    """The model's rates of a series; empty without a calibration, or without a model of it."""
    chip = chips(facts.inputs).get(machine)
    if chip is None:
        return []
    variant = facts.study.variant(series.variant)
    like = next(case for case in variant.cases if case.id == facts.study.headline)
    largest = like.number("pool_mib")
    found = []
    for pool in (*(one for one in MODEL_POOLS_MIB if one < largest), largest):
        values = {**like.values, "pool_mib": round(pool), "layout": series.layouts[0]}
        seconds = chip.seconds(variant, replace(like, values=values))
        if math.isfinite(seconds):
            found.append(Rate(pool / MIB_PER_GIB, like.payload_bytes / seconds / 1e9))
    return found


PLOT_PX, LEFT_PX, RIGHT_PX, TOP_PX = 232.0, 26.0, 112.0, 22.0
"""Height of the plot, and the margins around it."""
LABEL_PX, NARROW_PX = 14.0, 500.0
"""Least distance of two labels at the ends of lines; a narrower drawing has fewer ticks."""


@dataclass(frozen=True)
class Plot:
    """A plot on a canvas: logarithmic sizes of pools to the right, rates from zero upwards."""

    canvas: Canvas
    least: int
    most: float
    highest: int

    @property
    def right(self) -> float:
        return self.canvas.width - RIGHT_PX

    def x(self, gib: float) -> float:
        share = (math.log2(gib) - self.least) / (self.most - self.least)
        return LEFT_PX + (self.right - LEFT_PX) * share

    def y(self, rate: float) -> float:
        return TOP_PX + PLOT_PX * (1 - rate / self.highest)

    def across(self, rate: float, kind: str) -> None:
        self.canvas.line(LEFT_PX, self.y(rate), self.right, self.y(rate), kind)


def _draw(canvas: Canvas, picture: Picture) -> None:
    least, most = (math.log2(size) for size in picture.ends)
    tallest = max(picture.ceiling, *(line.end.rate for line in picture.lines))
    plot = Plot(canvas, math.floor(least), math.ceil(most * 2) / 2, math.ceil(tallest / 10) * 10)
    if math.isfinite(picture.reach_gib):
        canvas.box(LEFT_PX, TOP_PX, plot.x(picture.reach_gib) - LEFT_PX, PLOT_PX, "band")
        canvas.words(LEFT_PX + 6, plot.y(0) - 8, "TLB reach", "quiet")
    _draw_axes(plot)
    plot.across(picture.ceiling, "dashed")
    for line in picture.lines:
        _draw_line(plot, line)
    ends = [(plot.y(line.end.rate), _label(line), line.series.kind) for line in picture.lines]
    ends.append((plot.y(picture.ceiling), f"link {digits(picture.ceiling, 2)}", "quiet"))
    for at, (_, text, kind) in zip(_apart(ends), sorted(ends), strict=True):
        canvas.words(plot.right + 8, at + 4, text, f"label {kind}")


def _draw_axes(plot: Plot) -> None:
    canvas, bottom = plot.canvas, plot.y(0)
    for rate in range(0, plot.highest + 1, 10):
        plot.across(rate, "grid")
        canvas.words(LEFT_PX - 5, plot.y(rate) + 4, str(rate), "quiet", "end")
    step = 3 if canvas.width < NARROW_PX else 1
    for power in range(plot.least, math.floor(plot.most) + 1, step):
        canvas.words(plot.x(2.0**power), bottom + 15, _size(2.0**power), "quiet", "middle")
    canvas.words(0, 10, "payload, GB/s", "quiet")
    canvas.words(plot.right, bottom + 31, "size of the pool in host memory", "quiet", "end")


def _draw_line(plot: Plot, line: Line) -> None:
    kind = line.series.kind
    for rates, style in ((line.measured, ""), (line.modelled, "dashed")):
        if rates:
            places = [(plot.x(one.pool_gib), plot.y(one.rate)) for one in rates]
            plot.canvas.curve(places, f"{kind} {style}")
    for one in line.measured:
        x = plot.x(one.pool_gib)
        if math.isfinite(one.low):
            ends = plot.y(one.low), plot.y(min(one.high, plot.highest))
            plot.canvas.line(x, ends[0], x, ends[1], f"{kind} whisker")
        plot.canvas.dot(x, plot.y(one.rate), kind)


def _label(line: Line) -> str:
    return f"{line.series.name} {digits(line.end.rate, 2)}"


def _apart(ends: Sequence[tuple[float, str, str]]) -> list[float]:
    """Heights of the sorted labels, at least LABEL_PX apart."""
    heights = sorted(at for at, _, _ in ends)
    for index in range(len(heights) - 2, -1, -1):
        heights[index] = min(heights[index], heights[index + 1] - LABEL_PX)
    return heights


def _size(gib: float) -> str:
    return f"{gib:g} GiB" if gib >= 1 else f"{gib * MIB_PER_GIB:.0f} MiB"
