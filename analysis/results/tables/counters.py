"""Hardware counters: those of today's code, and predicted against counted ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

import pandas as pd

from analysis.base.records import read_records
from analysis.results.collect import CELL, Collected, taken_of
from analysis.results.model.traffic import Traffic, traffic_of
from analysis.results.store.records import Counter
from analysis.results.tables.rows import CounterRow, columns
from analysis.study import Study
from analysis.study.access import access_of
from analysis.study.claims.claim import still_named
from analysis.study.source import fingerprint

COUNT_COLUMNS: Final = [*CELL, "metric", "counted", "named", "stale"]
_MISS: Final = "srcunit_tex_aperture_sysmem_lookup_miss"
PREDICTED: Final[Mapping[str, Callable[[Traffic], float]]] = {
    "pcie__read_bytes.sum": lambda traffic: traffic.counted_bytes,
    f"lts__t_requests_{_MISS}.sum": lambda traffic: traffic.completions,
    f"lts__t_sectors_{_MISS}.sum": lambda traffic: traffic.sectors,
}
"""Counters of Nsight Compute that the model speaks of. The lts__ ones count what the SMs ask the L2
cache for and it has to fetch from host memory."""


def counts(found: Collected, studies: Mapping[str, Study]) -> pd.DataFrame:
    """The newest counters of each variant, summed over its kernels, in base units: COUNT_COLUMNS.
    `named` has the digests of today's claims that the profile names, a frozenset."""
    read = cache(lambda path: read_records(path, Counter))
    rows = []
    for machine in sorted({capture.about.machine for capture in found.captures}):
        for study in studies.values():
            for variant in study.variants:
                key = machine, study.name, variant.name
                taken = taken_of(found.captures, key, "counters", fingerprint(study, variant))
                if taken is None or not taken.is_captured:
                    continue
                totals: dict[tuple[str, str], float] = defaultdict(float)
                for counter in read(taken.capture.path):
                    if counter.variant == variant.name:
                        totals[counter.case, counter.metric] += counter.value
                about = still_named(taken.variant.bounds, study.bounds), not taken.is_fresh
                rows += [(*key, *cell, total, *about) for cell, total in totals.items()]
    return pd.DataFrame(rows, columns=COUNT_COLUMNS)


def counter_table(counted: pd.DataFrame, studies: Mapping[str, Study]) -> pd.DataFrame:
    """Every row of `counts` that can be predicted, with the columns of CounterRow. The copy engine
    is left out: its reads are no kernel's, so nothing counts them."""
    rows = []
    for row in counted.to_dict("records"):
        variant = studies[row["study"]].variant(row["variant"])
        predict, case = PREDICTED.get(row["metric"]), variant.case(row["case"])
        access = access_of(variant, case) if predict and case else None
        if predict and access and access.reads != "copy_engine":
            predicted = predict(traffic_of(access))
            unit = "B" if "bytes" in row["metric"] else "1"
            residual = row["counted"] / predicted - 1
            rows.append(row | {"unit": unit, "predicted": predicted, "residual": residual})
    return pd.DataFrame(rows, columns=columns(CounterRow))
