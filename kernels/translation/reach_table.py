"""Figures of tools/reach.cu on measured machines, beside those of this study."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
from pydantic import ConfigDict, Field

from analysis.api.charts import PageTable, StudyFacts
from analysis.api.files import Count, Keys, Positive, read_json, read_keys
from analysis.api.model import Walker, walk_seconds
from analysis.api.quantities import digits, quantity, signed_percent, whole
from analysis.api.study import parse_case

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = ROOT / "tools" / "reach.cu"
OUTPUTS: Final = ROOT / "tools" / "reach"
"""<machine>/<run>.json with --json, <machine>/reach.txt without, and <machine>/source.sha256: for
each of these files, a line with the digest of the source that wrote it, and its name."""
VARIANT, CLOCK = "rows_streaming", "gpu_time"
"""The variant that gathers as the probe does, and the clock."""
HELD: Final = "translations held"
WALKS: Final = "page walks from four times the reach"
READS: Final = 2.0**18
"""Reads of a launch of the probe."""
LIMIT_BYTES: Final = 200_000
"""Maximum size of an output."""

_Pool = Annotated[list[Positive], Field(min_length=4, max_length=4)]


class ReachKeys(Keys):
    """The keys that are used of the output of `tools/reach.cu` with `--json`; null marks unknown
    figures. `pools` are pool_bytes, bytes_per_s, predicted_bytes_per_s and reads_per_s of each
    pool."""

    model_config = ConfigDict(extra="ignore")
    pool_bytes: Count
    held: Positive | None
    walks_per_s: Positive | None
    row_bytes: Count
    pools: Annotated[list[_Pool], Field(min_length=1, max_length=100)]


class Agreement(NamedTuple):
    """A figure of the study, and of the probe whose `output` is of a pool of `pool_bytes`."""

    machine: str
    output: Path
    pool_bytes: int
    name: str
    by_study: float
    by_probe: float


def agreements(facts: StudyFacts, outputs: Path = OUTPUTS) -> list[Agreement]:
    """Every figure that the study and an output of the probe have on the same machine."""
    found = []
    for machine in facts.inputs.machines:
        known = _of_study(facts, machine)
        for path, probe in probes(outputs / machine).items():
            figures = {HELD: probe["held"], WALKS: probe["walks_per_s"]}
            for pool, measured, predicted, _ in probe["pools"]:
                name = _gather(probe["row_bytes"], pool)
                figures[name] = measured
                figures[f"{name}, predicted"] = predicted if probe["held"] else None
            place = machine, path, probe["pool_bytes"]
            found += [
                Agreement(*place, name, known[name], value)
                for name, value in figures.items()
                if name in known and value is not None
            ]
    return found


def is_current(output: Path, source: Path = SOURCE) -> bool:
    """Whether this source wrote an output."""
    digests = output.parent / "source.sha256"
    now = hashlib.sha256(source.read_bytes()).hexdigest()
    return digests.exists() and f"{now}  {output.name}" in digests.read_text().splitlines()


def probes(folder: Path) -> Mapping[Path, Mapping[str, Any]]:
    """The outputs for programs in a folder, smallest pool first. FieldError for a wrong one."""
    contents = {path: read_json(path, LIMIT_BYTES) for path in folder.glob("*.json")}
    for path, content in contents.items():
        read_keys(ReachKeys, content, path.name)
    return dict(sorted(contents.items(), key=lambda each: int(each[1]["pool_bytes"])))


def _of_study(facts: StudyFacts, machine: str) -> dict[str, float]:
    """The fit's parameters and the measured rates, by the same names."""
    known: dict[str, float] = {}
    fitted = {row.parameter: row.value for row in facts.inputs.parameters if row.machine == machine}
    if not math.isnan(fitted.get("held_entries", math.nan)):
        walker = Walker(*(fitted[field.name] for field in fields(Walker)))
        entries, reads, none = np.array([4 * walker.held_entries]), np.array([READS]), np.zeros(1)
        seconds = walk_seconds(walker, entries, entries, reads, none, none)
        walks = READS * (1 - 1 / 4)  # a quarter of the translations is held
        known |= {HELD: walker.held_entries, WALKS: float(walks / seconds[0])}
    for row in facts.measured.values():
        case = parse_case(row.case)
        is_gather = (row.machine, row.variant, row.metric) == (machine, VARIANT, CLOCK)
        if is_gather and case["order"] == "random" and case["rows"] == READS:
            size = int(case["row_bytes"])
            gather = _gather(size, int(case["pool_mib"]) * 2**20)
            known |= dict.fromkeys((gather, f"{gather}, predicted"), READS * size / row.median)
    return known


def _gather(row_bytes: float, pool_bytes: float) -> str:
    return f"rows of {row_bytes:.0f} B from {pool_bytes / 2**30:g} GiB"


def reach(facts: StudyFacts) -> PageTable:
    """The probe's figures beside those of the study, on every machine that has both."""
    columns = ["machine", "pool", "figure", "the study", "reach.cu", "difference", "note"]
    rows = [
        [
            facts.inputs.called(one.machine),
            f"{one.pool_bytes / 2**30:g} GiB",
            one.name,
            *(_written(one.name, value) for value in (one.by_study, one.by_probe)),
            signed_percent(one.by_probe / one.by_study - 1),
            "" if is_current(one.output) else "by an earlier version of the file",
        ]
        for one in agreements(facts)
    ]
    return PageTable(columns, rows, "No machine has both.", [columns[1], *columns[3:6]])


def _written(name: str, value: float) -> str:
    if name == WALKS:
        return f"{digits(value / 1e6)} million/s"
    return whole(value) if name == HELD else quantity(value, "B/s")
