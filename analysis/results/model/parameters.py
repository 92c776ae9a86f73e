"""The parameters of a machine, and the terms that they set."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from typing import Final, NamedTuple

import numpy as np

from analysis.study.access import Floats

TRANSLATION: Final = "translation"
TERMS: Final = ("link", "request rate", "SM request rate", "in flight", TRANSLATION, "start-up")
"""Columns of `term_seconds`. The time is the last one plus the largest of the others."""


@dataclass(frozen=True)
class Parameters:
    """Parameters by ABOUT; NaN if a calibration cannot determine one."""

    link_rate: float
    half_line: float
    request_rate: float
    sm_request_rate: float
    latency: float
    start_up: float
    index_latency: float
    copy_engine_start_up: float
    held_entries: float = math.nan
    walk: float = math.nan
    held_regions: float = math.nan
    region_walk: float = math.nan
    region_wait: float = math.nan
    table_miss: float = math.nan
    row_cache: float = math.nan

    def values(self) -> Floats:
        return np.array(astuple(self), dtype=float)


class About(NamedTuple):
    """The unit of a parameter, what it is, and the term that it sets; empty if it is part of every
    time."""

    unit: str
    meaning: str
    term: str = ""


ABOUT: Final = {
    "link_rate": About("B/s", "effective rate of the link, bytes on the wire", "link"),
    "half_line": About("B", "penalty of reading half of a host line, in wire bytes", "link"),
    "request_rate": About("1/s", "maximum rate of the chip's reads of host memory", "request rate"),
    "sm_request_rate": About("1/s", "maximum rate of the reads of one SM", "SM request rate"),
    "latency": About("s", "one turn of a warp: index, round trip, store", "in flight"),
    "start_up": About("s", "start-up time of a kernel"),
    "index_latency": About("s", "look-up of the first row in device memory"),
    "copy_engine_start_up": About("s", "start-up time of a copy behind a kernel"),
    "held_entries": About("1", "number of held translations of 64 KiB each", TRANSLATION),
    "walk": About("s", "a page walk whose line of the page table is in L2", TRANSLATION),
    "held_regions": About("1", "held entries of the level above, of 2 MiB each", TRANSLATION),
    "region_walk": About("s", "extra time of a walk that needs another such entry", TRANSLATION),
    "region_wait": About("s", "wait for each such entry, with ascending rows", TRANSLATION),
    "table_miss": About("s", "extra time of a walk whose line is in device memory", TRANSLATION),
    "row_cache": About("B", "bytes of rows that evict a page table's line from L2", TRANSLATION),
}
NAMES: Final = tuple(ABOUT)
BINDS: Final = {name: about.term for name, about in ABOUT.items() if about.term}
"""The term that each parameter sets."""
