"""Numbers as a reader sees them: SI prefixes, enough digits, intervals."""

import math
from collections.abc import Callable, Sequence
from typing import Final

from analysis.base.statistics import CONFIDENCE

_SECONDS: Final = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_RATES: Final = {"B/s": 1.0, "MB/s": 1e6, "GB/s": 1e9, "MiB/s": 2.0**20, "GiB/s": 2.0**30}
SI: Final = {
    **{unit: ("s", factor) for unit, factor in _SECONDS.items()},
    **{unit: ("B/s", factor) for unit, factor in (_RATES | {"Gbps": 1e9 / 8}).items()},
    "Mpps": ("1/s", 1e6),
    "x": ("1", 1.0),
}
"""SI base unit of each unit, and the factor that converts to it."""
INTERVAL: Final = f"{CONFIDENCE * 100:g} % interval"
_PREFIXES: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"))


def digits(value: float, significant: int = 3) -> str:
    """`value` with `significant` digits and no exponent: 47.9, 0.451, 1230."""
    if value == 0:
        return "0"
    places = max(significant - 1 - math.floor(math.log10(abs(value))), 0)
    return f"{value:.{places}f}"


def quantity(value: float, unit: str) -> str:
    """`value` in SI base `unit` with the prefix that suits it; counts (unit 1) bare, shares of 1
    (unit %) as percentages, and ratios (unit x) with their sign. Empty for NaN."""
    if math.isnan(value):
        return ""
    if unit in ("1", "%", "x"):
        return _count(value) if unit == "1" else percent(value) if unit == "%" else ratio(value)
    scale, prefix = _prefix(value)
    return f"{digits(value / scale, 4 if unit == 's' else 3)} {prefix}{unit}"


def binary(size: float) -> str:
    """A size in bytes in the largest binary unit that divides it: 188 MiB, 40 GiB."""
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size / unit:.0f} {name}"
    return f"{size:.0f} B"


def extent(values: Sequence[float], unit: str) -> str:
    """The smallest and the largest of `values`, once if they read alike: `1.2 µs to 3.4 µs`."""
    return " to ".join(dict.fromkeys(quantity(end, unit) for end in (min(values), max(values))))


def quantity_interval(value: float, low: float, high: float, unit: str) -> str:
    """`low to high unit` under the prefix of `value`, whose interval it is, or of the larger end
    if that is 0; empty without an interval. Units as of `quantity`."""
    if unit == "%":  # no end exceeds the whole, unless `value` does
        return _interval(low, min(high, max(value, 1.0)), 3, lambda share, _: percent(share))
    if unit in ("1", "x"):
        return _interval(low, high, 4, _count) if unit == "1" else ratio_interval(low, high)
    scale, prefix = _prefix(value or max(low, high, key=abs))
    written = digits_interval(low / scale, high / scale, 4 if unit == "s" else 3)
    return f"{written} {prefix}{unit}" if written else ""


def digits_interval(low: float, high: float, significant: int = 3) -> str:
    """`low to high` with `significant` digits, fewer for a wide interval; empty without one."""
    return _interval(low, high, significant, digits)


def ratio_interval(low: float, high: float) -> str:
    """`low to high` with the digits of `ratio`, fewer for a wide interval; empty without one."""
    return _interval(low, high, 3, _ratio_digits)


def _interval(low: float, high: float, most: int, written: Callable[[float, int], str]) -> str:
    """`low to high`, each with the digits that the width of the interval supports."""
    if math.isnan(low) or math.isnan(high):
        return ""
    width, scale = high - low, abs(high + low)
    significant = min(2 if width > 0.2 * scale else 3 if width > 0.02 * scale else most, most)
    return f"{written(low, significant)} to {written(high, significant)}"


def _count(value: float, significant: int = 4) -> str:
    return f"{value:.0f}" if value == round(value) else digits(value, significant)


def _ratio_digits(value: float, significant: int = 3) -> str:
    return f"{value:.3f}" if 0.9 < value < 1.1 else digits(value, significant)


def _prefix(value: float) -> tuple[float, str]:
    if value == 0 or math.isnan(value):
        return 1.0, ""
    return next((one for one in _PREFIXES if abs(value) >= one[0]), (1e-9, "n"))


def speed(payload_bytes: float, seconds: float) -> str:
    """The payload rate of an operation in GB/s; its time where it delivers no bytes."""
    if not payload_bytes:
        return quantity(seconds, "s")
    return gigabytes_per_second(payload_bytes / seconds / 1e9)


def gigabytes_per_second(rate: float) -> str:
    """A rate already in GB/s (1e9 B/s): `47.9 GB/s`."""
    return "" if math.isnan(rate) else f"{digits(rate)} GB/s"


def with_interval(figure: str, interval: str) -> str:
    """`figure (interval)`; only the figure where it has none."""
    return f"{figure} ({interval})" if interval else figure


def ratio(value: float) -> str:
    """A ratio with its sign: three decimals near 1, where the verdict is decided."""
    return f"{_ratio_digits(value)}×"


def percent(share: float) -> str:
    """A share of 1 as a whole percentage, one decimal below ten, one digit below a tenth."""
    if 0 < share < 0.001:
        return f"{digits(share * 100, 1)} %"
    return f"{share * 100:.0f} %" if share >= 0.1 else f"{share * 100:.1f} %"


def signed_percent(share: float) -> str:
    """A difference as a share of 1, as a percentage with its sign: `+1.3 %`, `-12.0 %`."""
    return f"{share * 100:+.1f} %"


def whole(value: float) -> str:
    """A count with thousands set apart; empty for NaN."""
    return "" if math.isnan(value) else f"{value:,.0f}".replace(",", "\u202f")


def runs_phrase(runs: int, hosts: int) -> str:
    """The evidence of a figure: `one run`, `4 runs, 3 hosts`."""
    return "one run" if runs == 1 else f"{runs} runs, {hosts} host{'s' * (hosts > 1)}"


def listing(items: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(part for part in (", ".join(items[:-1]), *items[-1:]) if part)
