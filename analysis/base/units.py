"""Units as they are printed, in SI base units."""

from __future__ import annotations

from typing import Final

SI: Final = {
    "s": ("s", 1.0),
    "ms": ("s", 1e-3),
    "us": ("s", 1e-6),
    "ns": ("s", 1e-9),
    "B/s": ("B/s", 1.0),
    "MB/s": ("B/s", 1e6),
    "GB/s": ("B/s", 1e9),
    "MiB/s": ("B/s", float(2**20)),
    "GiB/s": ("B/s", float(2**30)),
    "Gbps": ("B/s", 1e9 / 8),
    "Mpps": ("1/s", 1e6),
    "x": ("1", 1.0),
}
"""SI base unit of each unit, and the factor that converts to it."""

DATA_RATES: Final = tuple(unit for unit, (base, _) in SI.items() if base == "B/s")
