"""The model: the time of an operation is its start-up time plus the largest of five terms.

| term | seconds |
|---|---|
| link | bytes on the wire, with the extra cost of half lines / effective rate of the link |
| request rate | requests / maximum request rate of the chip |
| SM request rate | requests of one multiprocessor / its maximum request rate |
| in flight | turns of its warps * time of a turn (Little's law) |
| translation | walks of the page tables, one after the other; see `translation` beside this |
| start-up | fixed; plus the latency of device memory if it holds the indices of the rows |
"""

import math
from dataclasses import astuple, dataclass
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from analysis.results.model.traffic import traffic_of
from analysis.results.model.translation import Walks, walk_seconds, walks_of
from analysis.study.access import Access, Floats

METRIC: Final = "gpu_time"
"""The predicted metric: the operation's time on the device, in seconds."""
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

WORK: Final = (
    *("wire", "half lines", "requests", "requests of an SM", "turns"),
    *("indexed", "copy engine"),
    *("entries", "drawn", "touches", "ascending", "displacing"),
)
"""Columns of the model's input, `work_of`."""

WARPS_PER_SM: Final = 64
"""Maximum number of warps resident on a multiprocessor (CUDA C++ Programming Guide). The link
limits smaller grids, so register pressure and chips with 48 warps are ignored."""
WARPS_PER_BLOCK: Final = 8
"""Every kernel with a `link` launches blocks of 256 threads. A block has an SM to itself if there
are enough."""


def work_of(access: Access, sms: int) -> tuple[float, ...]:
    """A row of the model's input, in the order of WORK. Turns are the number of times each resident
    warp issues the loads it keeps in flight, at least one."""
    traffic = traffic_of(access)
    if access.reads == "copy_engine":
        return traffic.wire_bytes, *(0.0,) * 5, 1.0, *Walks()
    fills = access.payload_bytes / access.in_flight_bytes
    warps = min(fills, access.warps or sms * WARPS_PER_SM, sms * WARPS_PER_SM)
    used = min(sms, math.ceil(warps / WARPS_PER_BLOCK))
    requests = traffic.completions
    indexed = float(access.reads != "contiguous")
    of_the_link = (traffic.wire_bytes, traffic.half_lines, requests)
    of_the_sms = requests / used, fills / warps, indexed
    return *of_the_link, *of_the_sms, 0.0, *walks_of(access)


def work_in(rows: pd.DataFrame) -> Floats:
    """The columns of WORK of a table [cases, 12]."""
    return rows[[*WORK]].to_numpy(dtype=float)


def term_seconds(work: Floats, parameters: Floats) -> Floats:
    """Seconds of each of TERMS [cases, 6] for rows of `work_of` [cases, 12]; [sets, cases, 6] of
    several sets of parameters [sets, 15]."""
    known = Parameters(*parameters.T[..., np.newaxis])
    wire, half_lines, requests, requests_of_an_sm, turns, indexed, copy_engine = work.T[:7]
    start_up = known.start_up + indexed * known.index_latency
    return np.stack(
        np.broadcast_arrays(
            (wire + half_lines * known.half_line) / known.link_rate,
            requests / known.request_rate,
            requests_of_an_sm / known.sm_request_rate,
            turns * known.latency,
            walk_seconds(known, *work.T[7:]),
            np.where(copy_engine > 0, known.copy_engine_start_up, start_up),
        ),
        axis=-1,
    )


def predicted_seconds(work: Floats, parameters: Floats) -> Floats:
    """The predicted time in seconds of each row of `work`, [cases] or [sets, cases]."""
    terms = term_seconds(work, parameters)
    total: Floats = terms[..., :-1].max(axis=-1) + terms[..., -1]
    return total
