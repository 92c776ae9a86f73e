"""Captures of a variant: whether they exist, whether they are stale, and their counters."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

import pandas as pd
import pycxxfilt

from analysis.base.records import read_records
from analysis.results.collect import taken_of
from analysis.results.store import records
from analysis.results.store.records import CAPTURED as CAPTURED
from analysis.results.store.records import HOST_CALL as HOST_CALL
from analysis.results.store.records import KERNEL as KERNEL
from analysis.site.facts.inputs import Inputs
from analysis.study import Study, Variant
from analysis.study.source import fingerprint

STALE: Final = "stale"
MISSING: Final = "not captured"

_KERNEL: Final = re.compile(
    r"(?:void )?(?:(?:\w+|\(anonymous namespace\))::)*(?P<name>\w+)(?P<arguments><\w+(?:, \w+)*>)?"
)
"""Kernels return void and are not members, so only namespaces precede the name."""
_LITERAL: Final = re.compile(r"\b(\d+)[ul]+\b")

UNTRIED: Final = "no profiler has been run"
UNWANTED: Final = "the study requests none"
REWORDED: Final = {"launches no kernel": records.NO_KERNEL}
"""Replacements for reasons in older results that claim too much: a variant may leave its kernels
without work."""
UNPROFILED: Final = "the variant lacks the profiled case"


@dataclass(frozen=True)
class Capture:
    """Outcome of one capture of a variant: `captured`, `stale`, or `not captured` with a reason.

    `case` is that of the capture, and `path` its file, with the records of all variants.
    """

    state: str
    reason: str
    case: str
    path: Path
    variant: str

    @property
    def is_there(self) -> bool:
        return self.state != MISSING

    @cached_property
    def counters(self) -> dict[str, float]:
        """As `read_counters` of its file."""
        return read_counters(self.path, self.variant)

    @property
    def events(self) -> pd.DataFrame:
        """As `read_events` of its file."""
        return read_events(self.path, self.variant)


@dataclass(frozen=True)
class Captures:
    """Captures of a study, and why others are missing."""

    inputs: Inputs
    study: Study
    _found: dict[tuple[str, str, str], Capture] = field(default_factory=dict, init=False)

    def find(self, machine: str, variant: Variant, kind: str) -> Capture:
        """The capture of this kind, `counters` or `timeline`; stale if the source has changed."""
        key = machine, variant.name, kind
        if key not in self._found:
            self._found[key] = self._look_for(machine, variant, kind)
        return self._found[key]

    def _look_for(self, machine: str, variant: Variant, kind: str) -> Capture:
        key = machine, self.study.name, variant.name
        nowhere = self.inputs.results / machine / self.study.name
        if key not in self.inputs.runs_of:
            return Capture(MISSING, "the variant has not been measured", "", nowhere, variant.name)
        now = fingerprint(self.study, variant)
        taken = taken_of(self.inputs.captures, key, kind, now)
        if taken is None:
            return Capture(MISSING, self._untried(variant, kind), "", nowhere, variant.name)
        state = CAPTURED if taken.is_fresh else STALE
        reason = "" if taken.is_captured else taken.variant.status.partition(": ")[2]
        return Capture(
            state if taken.is_captured else MISSING,
            REWORDED.get(reason, reason),
            taken.variant.case,
            taken.capture.path,
            variant.name,
        )

    def _untried(self, variant: Variant, kind: str) -> str:
        """Reason for a capture that was never tried."""
        if kind not in variant.captures:
            return UNWANTED
        if self.study.captured_of(variant):
            return UNTRIED
        return f"{UNPROFILED}, {' or '.join(one.case for one in self.study.captured)}"


def read_counters(path: Path, variant: str) -> dict[str, float]:
    """Counters of a variant: sums over its kernels; for other metrics, the longest kernel's value.

    Raises HotpathError if the file is not a table of counters.
    """
    counted = [one for one in read_records(path, records.Counter) if one.variant == variant]
    rows = pd.DataFrame(map(asdict, counted), columns=list(records.COUNTER_COLUMNS))
    if rows.empty:
        return {}
    times = rows[rows["metric"] == "gpu__time_duration.sum"].groupby("kernel")["value"].sum()
    longest = times.idxmax() if len(times) else rows["kernel"].iloc[0]
    summed = rows[rows["metric"].str.endswith(".sum")].groupby("metric")["value"].sum()
    others = rows[(rows["kernel"] == longest) & ~rows["metric"].str.endswith(".sum")]
    return {
        str(name): float(value)
        for values in (summed, others.groupby("metric")["value"].mean())
        for name, value in values.items()
    }


def read_events(path: Path, variant: str) -> pd.DataFrame:
    """Events of a variant in a timeline, by `store.records.Event`; seconds from the first.

    Raises HotpathError if the file is not a timeline.
    """
    found = (one for one in read_records(path, records.Event) if one.variant == variant)
    events = pd.DataFrame(map(asdict, found))
    numbers = dict.fromkeys(("start", "end", "stream", "bytes"), "float64")
    return events.reindex(columns=list(records.EVENT_COLUMNS)).astype(numbers)


def kernel_name(symbol: str) -> str:
    """Short kernel name from a mangled one: copy_rows<4, Wide>.

    Template arguments are left out unless each is a number or one word. A name that is not mangled
    is returned unchanged.
    """
    try:
        demangled = pycxxfilt.itanium_demangle(symbol)
    except ValueError:  # it only begins like a mangled name
        return symbol
    found = _KERNEL.match(demangled or "")
    if found is None:
        return symbol
    return found["name"] + _LITERAL.sub(r"\1", found["arguments"] or "")
