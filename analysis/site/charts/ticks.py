"""Ticks of logarithmic axes. Vega's are all multiples of each decade: where their labels overlap,
those are left out that come later, be they decades or not."""

from __future__ import annotations

from typing import Any, Final

from analysis.site.charts.columns import encodings

POWERS: Final = range(-12, 16)
DECADES: Final = [float(f"1e{power}") for power in POWERS]
TICKS: Final = [float(f"{digit}e{power}") for power in POWERS for digit in (1, 2, 5)]
LABEL_PX: Final = {"x": 40, "y": 16}
"""Length of a label along its axis."""


def set_log_ticks(document: dict[str, Any]) -> None:
    """Give the logarithmic axes of a Vega-Lite `document` ticks at 1, 2 and 5 in each decade or,
    without room for these, at the decades. Axes below a decade keep Vega's ticks, and so do axes
    with explicit ticks or another base."""
    for channel, encoding in encodings(document):
        scale = encoding.get("scale") or {}
        if channel in LABEL_PX and scale.get("type") == "log" and "base" not in scale:
            encoding.setdefault("axis", {}).setdefault("values", {"expr": _ticks(channel)})


def _ticks(channel: str) -> str:
    """In Vega's words, as only Vega knows what is selected and how wide the plot is."""
    decades = f"log(domain('{channel}')[1] / domain('{channel}')[0]) / LN10"
    room = f"abs(range('{channel}')[1] - range('{channel}')[0])"
    needed = f"{LABEL_PX[channel]} * {decades} / 0.3"  # from 1 to 2, the nearest two
    return f"{decades} < 1 ? null : {needed} <= {room} ? {TICKS} : {DECADES}"
