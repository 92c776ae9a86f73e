"""Predicted hardware counters against counted ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Final

import pandas as pd

from analysis.base.records import columns as columns_of
from analysis.base.records import read_records
from analysis.results.collect import Collected, Taken, taken_of
from analysis.results.model.traffic import Traffic, traffic_of
from analysis.results.store.records import Counter
from analysis.results.tables.rows import CounterRow, columns, stacked
from analysis.study import Study
from analysis.study.access import access_of
from analysis.study.claims.claim import still_named
from analysis.study.source import fingerprint

VariantKey = tuple[str, str, str]
"""machine, study, variant"""
COUNTER_COLUMNS = columns(CounterRow)
COUNT_COLUMNS: Final = ["machine", "study", "variant", "case", "metric", "counted", "named"]

_MISS: Final = "srcunit_tex_aperture_sysmem_lookup_miss"
PREDICTED: Final[Mapping[str, Callable[[Traffic], float]]] = {
    "pcie__read_bytes.sum": lambda traffic: traffic.counted_bytes,
    f"lts__t_requests_{_MISS}.sum": lambda traffic: traffic.completions,
    f"lts__t_sectors_{_MISS}.sum": lambda traffic: traffic.sectors,
}
"""Counters of Nsight Compute that the model speaks of. The lts__ ones count what the SMs ask the L2
cache for and it has to fetch from host memory."""


def summed(counters: Sequence[Counter]) -> pd.DataFrame:
    """The counters of one variant: `case`, `metric`, and `counted`, summed over kernels, in base
    units: bytes or counts."""
    table = pd.DataFrame(map(asdict, counters), columns=[*columns_of(Counter)])
    totals = table.groupby(["case", "metric"], sort=False)["value"].sum().rename("counted")
    return totals.reset_index()


def counted_of(found: Collected, studies: Mapping[str, Study]) -> dict[VariantKey, Taken]:
    """The captured counters of each variant that the studies have."""
    machines = sorted({one.about.machine for one in found.captures})
    taken = {
        key: one
        for machine in machines
        for study in studies.values()
        for variant in study.variants
        if (key := (machine, study.name, variant.name))
        if (one := taken_of(found.captures, key, "counters", fingerprint(study, variant)))
    }
    return {key: one for key, one in taken.items() if one.is_captured}


def read_counted(taken: Mapping[VariantKey, Taken]) -> dict[VariantKey, list[Counter]]:
    """The counters of each variant."""
    files = {one.capture.path for one in taken.values()}
    records = {path: read_records(path, Counter) for path in files}
    return {
        key: [counter for counter in records[one.capture.path] if counter.variant == key[2]]
        for key, one in taken.items()
    }


def fresh_counts(found: Collected, studies: Mapping[str, Study]) -> pd.DataFrame:
    """The counters of today's code, in COUNT_COLUMNS; `named` has the digests of today's
    claims that the profile names, a frozenset."""
    tables = []
    fresh = {key: one for key, one in counted_of(found, studies).items() if one.is_fresh}
    for key, counters in read_counted(fresh).items():
        known = dict(zip(COUNT_COLUMNS, key, strict=False))
        named = still_named(fresh[key].variant.bounds, studies[key[1]].bounds)
        counts = summed(counters).assign(**known)
        tables.append(counts.assign(named=counts["case"].map(dict.fromkeys(counts["case"], named))))
    return stacked(tables, COUNT_COLUMNS)


def counter_table(
    captured: Mapping[VariantKey, Sequence[Counter]],
    machines: Iterable[str],
    studies: Mapping[str, Study],
) -> pd.DataFrame:
    """Every counter of `captured` that can be predicted, in COUNTER_COLUMNS.

    The copy engine is left out: its reads are no kernel's, so nothing counts them. FieldError if a
    study's `link` is invalid.
    """
    tables = [_of_machine(captured, machine, studies) for machine in machines]
    return stacked(tables, COUNTER_COLUMNS)


def _of_machine(
    captured: Mapping[VariantKey, Sequence[Counter]], machine: str, studies: Mapping[str, Study]
) -> pd.DataFrame:
    rows = []
    for study in studies.values():
        for variant in study.variants:
            taken = captured.get((machine, study.name, variant.name), [])
            if variant.link is None or variant.link["reads"] == "copy_engine":
                continue
            for found in summed(taken).to_dict("records"):
                predict = PREDICTED.get(str(found["metric"]))
                case = variant.case(str(found["case"]))
                access = access_of(variant, case) if case else None
                if predict is None or access is None:
                    continue
                predicted, counted = predict(traffic_of(access)), float(found["counted"])
                rows.append(
                    {
                        "machine": machine,
                        "study": study.name,
                        "variant": variant.name,
                        "case": found["case"],
                        "metric": found["metric"],
                        "unit": "B" if "bytes" in str(found["metric"]) else "1",
                        "predicted": predicted,
                        "counted": counted,
                        "residual": counted / predicted - 1,
                    }
                )
    return pd.DataFrame(rows, columns=COUNTER_COLUMNS)
