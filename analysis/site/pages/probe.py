"""The page of tools/reach.cu: its source, its output, and its agreement with `translation`."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup

from analysis.base.quantities import digits, listing, quantity, signed_percent, whole
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.probe import OUTPUTS, SOURCE, Agreement, agreements, is_current
from analysis.site.pages.differences import LANGUAGES, fenced
from analysis.site.pages.html import table
from analysis.site.pages.page import macro

NONE: Final = "No output of the program has been committed yet."
NEAR: Final = 0.1
"""A figure of the probe agrees with the study's if it differs by at most this share."""


@macro()
def reach_source() -> str:
    """The source of tools/reach.cu, with a button that copies it."""
    return fenced(SOURCE.read_text(), LANGUAGES[SOURCE.suffix])


@macro()
def reach_example() -> str:
    """The output of tools/reach.cu for people, from one of the machines."""
    if not (found := sorted(OUTPUTS.glob("*/reach.txt"), key=is_current)):
        return NONE
    note = "" if is_current(found[-1]) else "\n\nAn earlier version of the file wrote it."
    return f"{fenced(found[-1].read_text(), 'text')}{note}"


@macro()
def reach_agreement(inputs: Inputs) -> str | Markup:
    """The figures of tools/reach.cu beside those of the study, on every machine that has both."""
    found = agreements(inputs)
    if not found:
        return NONE
    groups: dict[tuple[str, str], list[Agreement]] = {}
    for one in found:
        groups.setdefault((one.machine, one.name), []).append(one)
    pools = sorted({one.pool_bytes for one in found})
    rows = [
        [
            *(inputs.called(machine), name, _quantity(same[0].by_study, same[0].unit)),
            *(", ".join(_cell(one) for one in same if one.pool_bytes == pool) for pool in pools),
        ]
        for (machine, name), same in groups.items()
    ]
    columns = ["machine", "figure", "the study"]
    columns += [f"reach.cu, pool of {pool / 2**30:g} GiB" for pool in pools]
    near = sum(abs(one.difference) <= NEAR for one in found)
    shown = f"{table(columns, rows, numeric=columns[2:])}\n\n"
    shown += f"{near} of {len(found)} figures of the program agree within {NEAR * 100:g} %."
    earlier = dict.fromkeys(
        f"{inputs.called(one.machine)} with a pool of {one.pool_bytes / 2**30:g} GiB"
        for one in found
        if not one.is_current
    )
    if not earlier:
        return shown
    return f"{shown} An earlier version of the file ran on {listing(list(earlier))}."


def _cell(one: Agreement) -> str:
    return f"{_quantity(one.by_probe, one.unit)} ({signed_percent(one.difference)})"


def _quantity(value: float, unit: str) -> str:
    if unit == "1/s":
        return f"{digits(value / 1e6)} million/s"
    return whole(value) if unit == "1" else quantity(value, unit)
