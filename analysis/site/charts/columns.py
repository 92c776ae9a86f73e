"""Columns of a chart's data: what they are called, how they are written, and which is measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import pandas as pd

from analysis.base.quantities import digits, listing, percent, quantity, ratio
from analysis.site.facts.points import CASE_PREFIX
from analysis.study import Case

COLUMNS: Final[Mapping[str, tuple[str, str]]] = {
    "seconds": ("time", "seconds"),
    "rate": ("GB/s", "digits"),
    "payload_bytes": ("payload, B", "whole"),
    "n": ("samples", "whole"),
    **{name: (name, "whole") for name in ("rounds", "runs", "hosts", "apart")},
    "throttled": ("throttled", "percent"),
    "verified": ("verified", "yes"),
    "ratio": ("ratio", "ratio"),
    "share": ("of the ceiling", "percent"),
}
"""Title and way of writing by the column's name; assets/figures.js has the ways of writing."""

FIRST_CLOCK: Final = "is_default"
"""Column that marks the points by the clock that a chart begins with."""

WHOLE: Final = ("gpu_time", "host_time")
"""Clocks that every study means alike: until the operation is complete."""
RATE: Final = "rate"


def delivered_bytes(case: Case, metric: str) -> int:
    """The payload that a time delivers: none if it is a part of the operation, as a CPU time is."""
    return case.payload_bytes if metric in WHOLE else 0


HIDDEN: Final = {
    *("title", "label", "short", "case", "href", "metric", FIRST_CLOCK, "role"),
    *("seconds_low", "seconds_high", "rate_low", "rate_high", "ci_low", "ci_high"),
    "by_run",
}
"""Columns that repeat others, or that only the drawing needs."""

NO_NAMES: Final[Mapping[str, str]] = {}
"""Machines are called by the names of their folders."""

_WRITERS: Final = {
    "seconds": lambda value: quantity(value, "s"),
    "digits": digits,
    "ratio": ratio,
    "percent": percent,
}


class Measure(NamedTuple):
    """The column a chart is about: its name, what it is called, and how it is written."""

    field: str
    title: str
    kind: str


def column_table(data: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Name, title and way of writing of the columns of `data` that its table shows."""
    return [
        (name, *COLUMNS.get(name, (name.removeprefix(CASE_PREFIX).replace("_", " "), "plain")))
        for name in map(str, data.columns)
        if name not in HIDDEN
    ]


def measure_of(document: Mapping[str, Any], data: pd.DataFrame) -> Measure | None:
    """The quantity of `data` that the Vega-Lite `document` shows; None without one.

    Times and rates come first, then what lies along y, x, a colour or stands as text. It has the
    title of its axis or legend.
    """
    found = [
        (channel, str(encoding["field"]), encoding)
        for channel, encoding in encodings(document)
        if encoding.get("type") == "quantitative" and _is_value(data, encoding.get("field", ""))
    ]
    order = ("y", "x", "color", "text")
    ranked = sorted(
        (one for one in found if one[0] in order),
        key=lambda one: (one[1] not in ("seconds", "rate"), order.index(one[0])),
    )
    if not ranked:
        return None
    field = ranked[0][1]
    shown = [encoding for _, name, encoding in ranked if name == field]
    title = next(filter(None, map(_title, shown)), field.replace("_", " "))
    kind = "percent" if any(map(_is_percent, shown)) else "digits"
    return Measure(field, str(title), COLUMNS.get(field, ("", kind))[1])


def _title(encoding: Mapping[str, Any]) -> Any:
    """Of a channel or else of its legend; None where neither has one."""
    return encoding.get("title") or (encoding.get("legend") or {}).get("title")


def _is_percent(encoding: Mapping[str, Any]) -> bool:
    """Whether the axis is written in per cent."""
    return str((encoding.get("axis") or {}).get("format", "")).endswith("%")


def encodings(part: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every channel with its encoding, in the order of `part`; tooltips have several."""
    if isinstance(part, list):
        for one in part:
            yield from encodings(one)
    elif isinstance(part, dict):
        for channel, encoding in part.get("encoding", {}).items():
            for one in encoding if isinstance(encoding, list) else [encoding]:
                if isinstance(one, dict):
                    yield channel, one
        for key, one in part.items():
            if key != "encoding":
                yield from encodings(one)


def _is_value(data: pd.DataFrame, field: str) -> bool:
    """Whether `field` is a column of numbers that was measured: no key, no end of an interval."""
    return (
        field in data.columns
        and pd.api.types.is_numeric_dtype(data[field])
        and not field.startswith(CASE_PREFIX)
        and not field.endswith(("_low", "_high"))
        and field != "payload_bytes"
    )


def text_of(
    data: pd.DataFrame, measure: Measure | None, names: Mapping[str, str] = NO_NAMES
) -> str:
    """How many points `data` has, of what, and its lowest and highest value with their places;
    `names` are those that pages have for machines.

    Ends of rates are by the clock that a chart begins with, and by one that waits for the payload:
    its bytes over the time of their submission are no rate.
    """
    data = data.reset_index(drop=True)  # joined tables may repeat their labels
    counted = [f"{len(data)} point{'s' * (len(data) != 1)}"]
    for name in ("variant", "machine"):
        if name in data.columns and (count := data[name].nunique()):
            counted.append(f"{count} {name}{'s' * (count > 1)}")
    summary = f"{counted[0]}{' of ' if counted[1:] else ''}{listing(counted[1:])}"
    known = _of_whole_operations(data) if measure and measure.field == RATE else data
    values = known[measure.field].dropna() if measure else pd.Series(dtype=float)
    if measure is None or values.empty:
        return f"{summary}."
    ends = [
        _end(data, measure, values, found, names) for found in (values.idxmin(), values.idxmax())
    ]
    by = ", by device or host time" if len(known) < len(data) else ""
    return f"{summary}; {measure.title}{by}: from {ends[0]} to {ends[1]}."


def _of_whole_operations(data: pd.DataFrame) -> pd.DataFrame:
    """The points whose clock a chart begins with and is one of WHOLE; all of other data."""
    if not {FIRST_CLOCK, "metric"} <= {*data.columns}:
        return data
    return data[(data[FIRST_CLOCK] == 1) & data["metric"].isin(WHOLE)]


def _end(
    data: pd.DataFrame,
    measure: Measure,
    values: pd.Series[Any],
    index: Any,
    names: Mapping[str, str],
) -> str:
    write = _WRITERS.get(measure.kind, digits)
    places = [str(data[name][index]) for name in ("variant", "machine") if name in data.columns]
    place = f" ({' on '.join(names.get(one, one) for one in places)})" if places else ""
    return f"{write(float(values[index]))}{place}"
