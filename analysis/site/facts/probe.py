"""Figures of tools/reach.cu on measured machines, beside those of the study `translation`."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from analysis import ROOT
from analysis.base import keys
from analysis.base.reading import read_json
from analysis.results.model.translation import Walker, walk_seconds
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.probe_keys import LIMIT_BYTES, ReachKeys
from analysis.site.facts.rows import MeasuredRow, rows_of
from analysis.study import parse_case

SOURCE: Final = ROOT / "tools" / "reach.cu"
OUTPUTS: Final = ROOT / "tools" / "reach"
"""<machine>/<run>.json with --json, <machine>/reach.txt without, and <machine>/source.sha256: for
each of these files, a line with the digest of the source that wrote it, and its name."""
GATHER: Final = ("translation", "rows_streaming")
"""The study and its variant that gathers as the probe does."""
HELD: Final = "translations held"
WALKS: Final = "page walks from four times the reach"
READS: Final = 2.0**18
"""Reads of a launch of the probe."""


@dataclass(frozen=True)
class Agreement:
    """A figure of the study, and of the probe with a pool of `pool_bytes`. `is_current` tests that
    today's source ran."""

    pool_bytes: int
    machine: str
    name: str
    unit: str
    by_study: float
    by_probe: float
    is_current: bool = True

    @property
    def difference(self) -> float:
        """Of the probe's figure, as a share of the study's."""
        return self.by_probe / self.by_study - 1


def agreements(inputs: Inputs, outputs: Path = OUTPUTS) -> list[Agreement]:
    """Every figure that the study and an output of the probe have on the same machine."""
    return [one for machine in inputs.machines for one in _on(inputs, machine, outputs)]


def is_current(output: Path, source: Path = SOURCE) -> bool:
    """Whether this source wrote an output."""
    digests = output.parent / "source.sha256"
    now = hashlib.sha256(source.read_bytes()).hexdigest()
    return digests.exists() and f"{now}  {output.name}" in digests.read_text().splitlines()


def probes(folder: Path) -> dict[Path, dict[str, Any]]:
    """The outputs for programs in a folder, smallest pool first. FieldError for a wrong one."""
    found = [(path, _read(path)) for path in folder.glob("*.json")]
    return dict(sorted(found, key=lambda each: int(each[1]["pool_bytes"])))


def _read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = read_json(path, LIMIT_BYTES)
    keys.read(ReachKeys, content, path.name)
    return content


def _on(inputs: Inputs, machine: str, outputs: Path) -> Iterator[Agreement]:
    known = _of_study(inputs, machine)
    for path, probe in probes(outputs / machine).items():
        about = probe["pool_bytes"], machine
        for name, (value, unit) in _of_probe(probe).items():
            if name in known and value is not None:
                yield Agreement(*about, name, unit, known[name], value, is_current(path))


def _of_probe(probe: Mapping[str, Any]) -> dict[str, tuple[float | None, str]]:
    """Value and unit of each figure by its name."""
    found: dict[str, tuple[float | None, str]] = {
        HELD: (probe["held"], "1"),
        WALKS: (probe["walks_per_s"], "1/s"),
    }
    for pool, measured, predicted, _ in probe["pools"]:
        name = _gather(probe["row_bytes"], pool)
        found[name] = measured, "B/s"
        found[_predicted(name)] = predicted if probe["held"] else None, "B/s"
    return found


def _of_study(inputs: Inputs, machine: str) -> dict[str, float]:
    """The fit's parameters and the measured rates, by the same names."""
    found: dict[str, float] = {}
    fitted = {row.parameter: row.value for row in inputs.parameters if row.machine == machine}
    if not math.isnan(fitted.get("held_entries", math.nan)):
        walker = Walker(*(fitted[field.name] for field in fields(Walker)))
        found |= {HELD: walker.held_entries, WALKS: _walks_per_s(walker)}
    summary = inputs.tables["summary"]
    figures = summary.set_index(["machine", "study", "variant", "metric"], drop=False)
    is_gather = figures.index.isin([(machine, *GATHER, "gpu_time")])
    for row in rows_of(summary[is_gather], MeasuredRow):
        case = parse_case(row.case)
        if case["order"] == "random" and case["rows"] == READS:
            size = int(case["row_bytes"])
            name = _gather(size, int(case["pool_mib"]) * 2**20)
            found[name] = found[_predicted(name)] = READS * size / row.median
    return found


def _walks_per_s(walker: Walker) -> float:
    """Walks a second by the study's model, in a launch from four times the reach."""
    entries, reads, none = np.array([4 * walker.held_entries]), np.array([READS]), np.zeros(1)
    seconds = walk_seconds(walker, entries, entries, reads, none, none)
    return float(READS * (1 - 1 / 4) / seconds[0])


def _gather(row_bytes: float, pool_bytes: float) -> str:
    return f"rows of {row_bytes:.0f} B from {pool_bytes / 2**30:g} GiB"


def _predicted(gather: str) -> str:
    return f"{gather}, predicted"
