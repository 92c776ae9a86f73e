"""A machine with one complete study, and changes to its files."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from analysis.base.records import write_records
from analysis.results.store.counters import Counter
from analysis.results.store.telemetry import COLUMNS as READING
from analysis.results.store.timelines import Event, write_events
from analysis.site.facts.captures import CAPTURED
from analysis.study import Study
from tests.editing import edit_json
from tests.synthetic import RUN, add_run, provenance_of, samples_of, write_machine

PAYLOAD: Final = (
    """<img src=x onerror=hit(1)> <script>hit(2)</script> [a](javascript:hit(3)) """
    """`{{ 7 * 7 }}` {% raw %} {: onclick=hit(4) } **b** _c_ "' &lt; </td></table></div>"""
)
"""Text that would run or change in a page unless it is escaped."""
STUDY, VARIANT = "calls", "kernel"
VALUES = "host_time [s]"
"""A column of values in the samples."""

Change = Callable[[Path], object]
"""Changes the results in a machine's folder."""


def write_whole_machine(root: Path, machine: str, study: Study) -> None:
    """Two runs of every variant of a small study, and every kind of capture of one of them."""
    write_machine(root, machine, study, rounds=2)
    variant = study.variant(VARIANT)
    earlier = provenance_of(study, variant, run="2026-01-01T03:04:05Z")
    captures = {
        kind: {"status": CAPTURED, "at": RUN, "case": study.headline, "source_sha256": "0" * 64}
        for kind in ("telemetry", "ncu", "timeline")
    }
    for provenance in (earlier, provenance_of(study, variant) | {"captures": captures}):
        samples = samples_of(study, variant, run=provenance["run"], rounds=2)
        add_run(root, machine, study.name, VARIANT, samples, provenance)
    base = root / machine / study.name / VARIANT
    counter = Counter(study.headline, "k(int)", "gpu__time_duration.sum", "ns", 10.0)
    write_records(base.with_suffix(".ncu.csv"), Counter, [counter])
    call = Event(0.0, 1e-6, None, "host call", "cudaLaunchKernel", None, 1)
    write_events(base.with_suffix(".timeline.csv"), [call])
    reading = [RUN, "0", study.headline, RUN, "100.5", "", "30", "1980", "2619", "", "", "", "0"]
    telemetry = f"{','.join(READING)}\n{','.join(reading)}\n"
    base.with_suffix(".telemetry.csv").write_text(telemetry)


def file(name: str) -> Callable[[Path], Path]:
    return lambda machine: machine / STUDY / name


def sign(machine: Path) -> None:
    """Record the current checksum of the samples."""
    content = file(f"{VARIANT}.csv")(machine).read_bytes()
    provenance(lambda d: d.update(samples_sha256=hashlib.sha256(content).hexdigest()))(machine)


def provenance(edit: Callable[[Any], object]) -> Change:
    return lambda machine: edit_json(file(f"{VARIANT}.json")(machine), edit)


def machine_json(edit: Callable[[Any], object]) -> Change:
    return lambda machine: edit_json(machine / "machine.json", edit)


def table(name: str, edit: Callable[[list[list[str]]], object]) -> Change:
    """Edit the rows of a CSV file, the header among them, and sign the samples."""

    def change(machine: Path) -> None:
        path = file(name)(machine)
        rows = list(csv.reader(io.StringIO(path.read_text(), newline="")))
        edit(rows)
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows(rows)
        path.write_text(buffer.getvalue(), newline="")
        sign(machine)

    return change


def cell(column: str, value: str, name: str = f"{VARIANT}.csv", line: int = 3) -> Change:
    def edit(rows: list[list[str]]) -> None:
        rows[line - 1][rows[0].index(column)] = value

    return table(name, edit)


def content(name: str, data: bytes) -> Change:
    def change(machine: Path) -> None:
        file(name)(machine).write_bytes(data)
        sign(machine)

    return change


def raw(name: str, data: bytes) -> Change:
    return lambda machine: file(name)(machine).write_bytes(data)


def valueless(status: str, reason: str) -> Change:
    """Make line 3 a case without a value."""

    def edit(rows: list[list[str]]) -> None:
        row = dict(zip(rows[0], rows[2], strict=True))
        row |= dict.fromkeys((column for column in row if "[" in column), "")
        row |= {"status": status, "reason": reason, "verified": "0"}
        rows[2] = list(row.values())

    return table(f"{VARIANT}.csv", edit)


def link_to(name: str, target: str) -> Change:
    def change(machine: Path) -> None:
        path = machine / name
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.symlink_to(target)

    return change


def moved(name: str) -> Change:
    """Replace the file by a link to it."""

    def change(machine: Path) -> None:
        (machine.parent / "published").mkdir(exist_ok=True)
        away = machine.parent / "published" / f"{machine.name}-{Path(name).name}"
        (machine / name).rename(away)
        (machine / name).symlink_to(away)

    return change


def pipe(name: str) -> Change:
    def change(machine: Path) -> None:
        (machine / name).unlink(missing_ok=True)
        os.mkfifo(machine / name)

    return change


def huge(name: str) -> Change:
    return lambda machine: os.truncate(machine / name, 2**40)


def in_turn(*changes: Change) -> Change:
    def change(machine: Path) -> None:
        for one in changes:
            one(machine)

    return change


def renamed(old: str, new: str) -> Change:
    return lambda machine: (machine / old).rename(machine / new)


def column(name: str) -> Change:
    """Rename a column of values."""

    def edit(rows: list[list[str]]) -> None:
        rows[0][rows[0].index(VALUES)] = name

    return table(f"{VARIANT}.csv", edit)


def without_values(rows: list[list[str]]) -> None:
    """Empty the cells of values in line 3."""
    rows[2] = ["" if "[" in name else text for name, text in zip(rows[0], rows[2], strict=True)]


def also_skipped(rows: list[list[str]]) -> None:
    """Add a skipped row for the cell of line 3."""
    row = dict(zip(rows[0], rows[2], strict=True)) | {"status": "skipped", "reason": "no"}
    rows.insert(3, ["" if "[" in name else text for name, text in row.items()])


def repeated_row(rows: list[list[str]]) -> None:
    rows.insert(3, list(rows[2]))


def widen(rows: list[list[str]]) -> None:
    for row in rows:
        row.append("1")
