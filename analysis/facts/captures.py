"""What was captured of a variant: whether it is there and of today's code, and its counters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd

from analysis.facts.inputs import Inputs
from analysis.source import fingerprint
from analysis.store import counters, timelines
from analysis.study import Study, Variant

CAPTURED: Final = "captured"
STALE: Final = "stale"
MISSING: Final = "not captured"

UNTRIED: Final = "no profiler has been run"
UNWANTED: Final = "the study asks for none"
UNPROFILED: Final = "the variant does not have the case that is profiled"


@dataclass(frozen=True)
class Capture:
    """What became of one capture of a variant: `captured`, `stale`, or `not captured` and why."""

    state: str
    reason: str
    case: str
    path: Path

    @property
    def is_there(self) -> bool:
        return self.state != MISSING


@dataclass(frozen=True)
class Captures:
    """Captures of a study: files beside the samples, and what the provenance says of them."""

    inputs: Inputs
    study: Study

    def find(self, machine: str, variant: Variant, kind: str) -> Capture:
        """The capture of this kind, `ncu` or `timeline`; stale if the source has changed."""
        path = self.inputs.results / machine / self.study.name / f"{variant.name}.{kind}.csv"
        provenance = self.inputs.provenance.get((machine, self.study.name, variant.name))
        if provenance is None:
            return Capture(MISSING, "the variant has not been measured", "", path)
        entry: Mapping[str, Any] = provenance.get("captures", {}).get(kind, {})
        status = str(entry.get("status", f"{MISSING}: {self._untried(variant, kind)}"))
        case = str(entry.get("case", ""))
        if status != CAPTURED:
            return Capture(MISSING, status.partition(": ")[2] or status, case, path)
        if not path.exists():
            return Capture(MISSING, f"{path.name} is missing", case, path)
        is_current = entry.get("source_sha256") == fingerprint(self.study, variant)
        return Capture(CAPTURED if is_current else STALE, "", case, path)

    def _untried(self, variant: Variant, kind: str) -> str:
        """Why there is none where nobody tried to capture it."""
        if kind not in variant.captures:
            return UNWANTED
        headline = self.study.headline
        is_profiled = headline in {case.id for case in variant.cases}
        return UNTRIED if is_profiled else f"{UNPROFILED}, {headline}"


def read_counters(path: Path) -> dict[str, float]:
    """A variant's counters: sums over its kernels, and for the rest the longest kernel's.

    HotpathError where the file is no table of counters.
    """
    rows = pd.DataFrame(
        [asdict(row) for row in counters.read_counters(path)], columns=list(counters.COLUMNS)
    )
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


def read_events(path: Path) -> pd.DataFrame:
    """A timeline as captured, by `analysis.store.timelines.Event`, times in seconds from its first
    event.

    HotpathError where the file is no timeline.
    """
    events = pd.DataFrame([asdict(event) for event in timelines.read_events(path)])
    numbers = dict.fromkeys(("start", "end", "stream", "bytes"), "float64")
    return events.reindex(columns=list(timelines.COLUMNS)).astype(numbers)


def kernel_name(symbol: str) -> str:
    """The function's own part of a mangled name, with template arguments: copy_rows<4, Wide>.

    What is not mangled, or in another way than the usual, stays as it is.
    """
    nested = symbol.startswith("_ZN")
    rest = symbol.removeprefix("_ZN" if nested else "_Z")
    name = ""
    while rest != symbol and (found := _source_name(rest)) and (nested or not name):
        name, rest = found
    arguments = []
    rest = rest[1:] if name and rest.startswith("I") else ""
    while rest and not rest.startswith("E"):
        if number := re.match(r"L[ijlm](\d+)E", rest):
            arguments.append(number[1])
            rest = rest[number.end() :]
        elif found := _source_name(rest):
            arguments.append(found[0])
            rest = found[1]
        else:
            return name
    return f"{name}<{', '.join(arguments)}>" if arguments else name or symbol


def _source_name(mangled: str) -> tuple[str, str] | None:
    """The name that `mangled` begins with, `4copyXY` for copy, and what follows it."""
    length = re.match(r"\d+", mangled)
    if length is None:
        return None
    end = length.end() + int(length[0])
    return mangled[length.end() : end], mangled[end:]
