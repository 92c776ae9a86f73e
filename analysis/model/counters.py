"""Predicted hardware counters against counted ones: <variant>.ncu.csv beside the samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pandas as pd

from analysis.errors import HotpathError
from analysis.model.access import access_of
from analysis.model.traffic import Traffic, traffic_of
from analysis.study import Study

COUNTER_COLUMNS = [
    *("machine", "study", "variant", "case", "metric", "unit"),
    *("predicted", "counted", "residual"),
]
CAPTURED_COLUMNS = ["case", "kernel", "metric", "unit", "value"]

_MISS: Final = "srcunit_tex_aperture_sysmem_lookup_miss"
PREDICTED: Final[Mapping[str, Callable[[Traffic], float]]] = {
    "pcie__read_bytes.sum": lambda traffic: traffic.counted_bytes,
    f"lts__t_requests_{_MISS}.sum": lambda traffic: traffic.completions,
    f"lts__t_sectors_{_MISS}.sum": lambda traffic: traffic.sectors,
}
"""Counters of Nsight Compute that the model speaks of. The lts__ ones count what the SMs ask the L2
cache for and it has to fetch from host memory."""


def read_captured(path: Path) -> pd.DataFrame:
    """The counters of one variant: `case`, `metric`, and `counted`, summed over kernels.

    In base units: bytes or counts. HotpathError where the file is no table with CAPTURED_COLUMNS or
    a value no number.
    """
    try:
        table = pd.read_csv(path)
    except ValueError as error:
        raise HotpathError(f"{path}: {error}") from error
    missing = [name for name in CAPTURED_COLUMNS if name not in table.columns]
    if missing:
        raise HotpathError(f"{path}: columns {missing} are missing")
    table["counted"] = pd.to_numeric(table["value"], errors="coerce")
    if table["counted"].isna().any():
        raise HotpathError(f"{path}: a value is no number")
    summed = table.groupby(["case", "metric"], sort=False)["counted"].sum()
    return summed.reset_index()


def compare_counters(results: Path, machine: str, studies: Mapping[str, Study]) -> pd.DataFrame:
    """Every counter that was captured on `machine` and can be predicted, in COUNTER_COLUMNS.

    The copy engine is left out: its reads are no kernel's, so nothing counts them.
    """
    rows = []
    for study in studies.values():
        for variant in study.variants:
            path = results / machine / study.name / f"{variant.name}.ncu.csv"
            if variant.link is None or variant.link["reads"] == "copy_engine" or not path.exists():
                continue
            cases = {case.id: case for case in variant.cases}
            for found in read_captured(path).to_dict("records"):
                predict = PREDICTED.get(str(found["metric"]))
                case = cases.get(str(found["case"]))
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
