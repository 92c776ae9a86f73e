"""Tables of this study: the model's parameters, and what tools/reach.cu finds on measured machines
beside what this study does."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

from markupsafe import Markup
from pydantic import ConfigDict, Field

from analysis.api.charts import PageTable, StudyFacts, fresh_figures
from analysis.api.files import Count, Keys, Positive, read_json, read_keys
from analysis.api.model import ABOUT
from analysis.api.quantities import INTERVAL, quantity, quantity_interval, signed_percent

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = ROOT / "tools" / "reach.cu"
OUTPUTS: Final = ROOT / "tools" / "reach"
"""<machine>/<run>.json with --json, <machine>/reach.txt without, and <machine>/source.sha256: for
each of these files, a line with the digest of the source that wrote it, and its name."""
VARIANT, CLOCK = "rows_streaming", "gpu_time"
"""The variant that gathers as the probe does, and the clock."""
HELD: Final = "translations held"
READS: Final = 2**18
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
    row_bytes: Count
    pools: Annotated[list[_Pool], Field(min_length=1, max_length=100)]


def is_current(output: Path, source: Path = SOURCE) -> bool:
    """Whether this source wrote an output."""
    digests = output.parent / "source.sha256"
    now = hashlib.sha256(source.read_bytes()).hexdigest()
    return digests.exists() and f"{now}  {output.name}" in digests.read_text().splitlines()


def probes(folder: Path) -> Mapping[Path, ReachKeys]:
    """The outputs for programs in a folder, smallest pool first. FieldError for a wrong one."""
    files = folder.glob("*.json")
    found = {one: read_keys(ReachKeys, read_json(one, LIMIT_BYTES), one.name) for one in files}
    return dict(sorted(found.items(), key=lambda each: each[1].pool_bytes))


def of_study(facts: StudyFacts) -> Mapping[tuple[str, str], float]:
    """The fitted number of held translations, and the median rates, by machine and name."""
    fitted = [one for one in facts.inputs.parameters if one.parameter == "held_entries"]
    known = {(one.machine, HELD): one.value for one in fitted if not math.isnan(one.value)}
    cells = fresh_figures(facts, CLOCK)
    cells = cells[cells["variant"].eq(VARIANT) & cells["order"].eq("random")]
    for cell in cells[cells["rows"].eq(READS)].to_dict("records"):
        name = _gather(cell["row_bytes"], cell["pool_mib"] * 2**20)
        known[cell["machine"], name] = READS * cell["row_bytes"] / cell["median"]
    return known


def _gather(row_bytes: float, pool_bytes: float) -> str:
    return f"rows of {row_bytes:.0f} B from {pool_bytes / 2**30:g} GiB"


def reach(facts: StudyFacts, outputs: Path = OUTPUTS) -> PageTable:
    """The probe's figures beside those of the study, on every machine that has both."""
    known, rows = of_study(facts), []
    for machine in facts.inputs.machines:
        for path, probe in probes(outputs / machine).items():
            start = [facts.inputs.called(machine), f"{probe.pool_bytes / 2**30:g} GiB"]
            note = "" if is_current(path) else "by an earlier version of the file"
            rates = {_gather(probe.row_bytes, pool): rate for pool, rate, *_ in probe.pools}
            for name, found in ({HELD: probe.held} | rates).items():
                if found and (expected := known.get((machine, name))):
                    unit, difference = {HELD: "1"}.get(name, "B/s"), found / expected - 1
                    figures = quantity(expected, unit), quantity(found, unit)
                    rows.append([*start, name, *figures, signed_percent(difference), note])
    columns = ["machine", "pool", "figure", "the study", "reach.cu", "difference", "note"]
    return PageTable(columns, rows, "No machine has both.", [columns[1], *columns[3:6]])


def parameters(facts: StudyFacts) -> PageTable:
    """The parameters of the link model on every machine."""
    columns = ["machine", "parameter", "meaning", "value", INTERVAL, "from"]
    rows = []
    for row in facts.inputs.parameters:
        unit = row.unit if row.unit == "1" else row.unit.removeprefix("1")
        value = quantity(row.value, unit) or "not measured"
        interval = quantity_interval(row.value, row.ci_low, row.ci_high, unit)
        name = [Markup("<code>{}</code>").format(row.parameter), ABOUT[row.parameter].meaning]
        basis = f"{row.cases} cases, {row.runs} run{'s' * (row.runs > 1)}"
        rows.append([facts.inputs.called(row.machine), *name, value, interval, basis])
    return PageTable(columns, rows, "No machine has been calibrated yet.", columns[4:])


TABLES: Final = {"parameters": parameters, "reach": reach}
