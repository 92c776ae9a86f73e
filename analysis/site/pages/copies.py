"""Copies from the host in timelines: how busy they keep a copy engine."""

from __future__ import annotations

import math
from typing import Final

import pandas as pd
from markupsafe import Markup

from analysis.base.quantities import gigabytes_per_second, percent, quantity, whole
from analysis.site.facts.captures import HOST_CALL, KERNEL
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.captured import titled
from analysis.site.pages.html import NO_HTML, table
from analysis.site.pages.page import macro

FROM_HOST: Final = "memcpy HtoD"
"""What timelines call a copy from the host's memory to a GPU's."""


@macro("copies")
def copy_tables(facts: StudyFacts) -> Markup:
    """The load of the copy engine by copies from the host, from timelines."""
    return NO_HTML.join(_copies_on(facts, machine) for machine in facts.machines)


def _copies_on(facts: StudyFacts, machine: str) -> Markup:
    rows: dict[str, list[list[str]]] = {}
    for variant in facts.study.variants:
        capture = facts.captures.find(machine, variant, "timeline")
        cells = _copying(capture.events) if capture.is_there else None
        if cells:
            rows.setdefault(capture.case, []).append([titled(variant, capture), *cells])
    columns = ["variant", "delay of the first copy", "copies", "time from first to last"]
    columns += ["share spent copying", "rate beside kernels", "rate without kernels"]
    called = facts.inputs.called(machine)
    return NO_HTML.join(
        table(columns, copied, caption=f"Traced on {called}, case {case}", numeric=columns[1:])
        for case, copied in rows.items()
    )


def _copying(events: pd.DataFrame) -> list[str] | None:
    """How long the first copy from the host waited for a copy engine, how many there were, from
    when to when, how busy they kept it, and how fast they were while a kernel ran and while none
    did; None where there were none."""
    copies = events[events["name"] == FROM_HOST]
    if copies.empty:
        return None
    first = copies.sort_values("start").iloc[0]
    is_call = (events["kind"] == HOST_CALL) & (events["correlation"] == first["correlation"])
    called = events.loc[is_call, "start"].min()
    span = copies["end"].max() - copies["start"].min()
    beside = _overlaps(copies, events[events["kind"] == KERNEL])
    lengths = copies["end"] - copies["start"]
    return [
        "" if math.isnan(called) else quantity(first["start"] - called, "s"),
        whole(len(copies)),
        quantity(span, "s"),
        percent(lengths.sum() / span),
        _rate(copies["bytes"] * beside / lengths, beside),
        _rate(copies["bytes"] * (1 - beside / lengths), lengths - beside),
    ]


def _overlaps(copies: pd.DataFrame, kernels: pd.DataFrame) -> pd.Series:
    """For how many seconds of each copy a kernel ran."""
    kernels = kernels.sort_values("start")
    # Kernels that follow each other without a pause, or overlap, are one.
    others = (kernels["start"] > kernels["end"].cummax().shift()).cumsum()
    found = pd.Series(0.0, index=copies.index)
    for _, together in kernels.groupby(others):
        start = copies["start"].clip(lower=together["start"].min())
        end = copies["end"].clip(upper=together["end"].max())
        found += (end - start).clip(lower=0)
    return found


def _rate(copied: pd.Series, seconds: pd.Series) -> str:
    """The rate of bytes over seconds; empty without seconds, and for a single copy: its length does
    not show which part moved while a kernel ran."""
    total = seconds.sum()
    if total == 0 or len(copied) == 1:
        return ""
    return gigabytes_per_second(copied.sum() / total * 1e-9)
