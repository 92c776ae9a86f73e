"""Captures of a variant: whether they exist, whether they are stale, and their counters."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final

import pandas as pd

from analysis.base.records import columns, read_records
from analysis.results.store.records import CAPTURED as CAPTURED
from analysis.results.store.records import Counter, Event

STALE: Final = "stale"
MISSING: Final = "not captured"
UNTRIED: Final = "no profiler has been run"
UNWANTED: Final = "the study requests none"

_DEVICE: Final = "lts__t_requests{}_aperture_device.sum"


@dataclass(frozen=True)
class Capture:
    """Outcome of one capture of a variant: `captured`, `stale`, or `not captured` with a reason.

    `case` is that of the capture, and `path` its file, with the records of all variants.
    """

    state: str
    reason: str
    case: str = ""
    path: Path = Path()
    variant: str = ""

    @property
    def is_there(self) -> bool:
        return self.state != MISSING

    @cached_property
    def counters(self) -> dict[str, float]:
        """Sums over the kernels; for other metrics, the longest kernel's value.

        Raises HotpathError if the file is not a table of counters.
        """
        rows = self._records_of(Counter)
        if rows.empty:
            return {}
        is_sum = rows["metric"].str.endswith(".sum")
        is_time = rows["metric"].str.contains("duration")
        times = rows[is_sum & is_time].groupby("kernel")["value"].sum()
        longest = times.idxmax() if len(times) else rows["kernel"].iloc[0]
        of_longest = rows[~is_sum & (rows["kernel"] == longest)].groupby("metric")["value"].mean()
        sums = rows[is_sum].groupby("metric")["value"].sum()
        return {str(name): float(value) for name, value in pd.concat([sums, of_longest]).items()}

    @property
    def events(self) -> pd.DataFrame:
        """Events of a timeline, by `store.records.Event`; seconds from the first.

        Raises HotpathError if the file is not a timeline.
        """
        return self._records_of(Event)

    def _records_of(self, kind: Any) -> pd.DataFrame:
        rows = _records(self.path, kind, self.path.stat().st_mtime_ns)
        return rows[rows["variant"] == self.variant]


def walk_reads(counters: Mapping[str, float]) -> float:
    """Reads of page tables: requests for device memory from neither an SM nor the other half of
    the L2. KeyError if they were not counted."""
    names = [_DEVICE.format(source) for source in ("", "_srcnode_gpc", "_srcunit_ltcfabric")]
    every, from_sms, fabric = (counters[name] for name in names)
    return max(0.0, every - from_sms - fabric)


@lru_cache(maxsize=8)
def _records(path: Path, kind: Any, written_ns: int) -> pd.DataFrame:
    """All records of a file, which is read once for all of its variants."""
    table = pd.DataFrame(map(vars, read_records(path, kind)), columns=list(columns(kind)))
    numbers = {"start", "end", "stream", "bytes"} & {*table.columns}
    return table.astype(dict.fromkeys(numbers, "float64"))
