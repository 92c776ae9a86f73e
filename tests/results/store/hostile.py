"""Faults of a machine's results: named ones, and random edits."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import random
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from analysis.results.store.records import READING_COLUMNS, Counter, Event
from analysis.results.store.samples import to_text
from analysis.study import Study
from tests.editing import edit_json
from tests.synthetic import RUN, name_of, set_capture, write_machine

PAYLOAD: Final = (
    """<img src=x onerror=hit(1)> <script>hit(2)</script> [a](javascript:hit(3)) """
    """`{{ 7 * 7 }}` {% raw %} {: onclick=hit(4) } **b** _c_ "' &lt; </td></table></div>"""
)
"""Text that would run or change in a page unless it is escaped."""
STUDY, VARIANT = "calls", "kernel"
EARLIER: Final = "2026-01-01T03:04:05Z"
NAME: Final = name_of(RUN)
SAMPLES, JSON, TELEMETRY = f"{NAME}.csv", f"{NAME}.json", f"{NAME}.telemetry.csv"
COUNTERS, TIMELINE = f"{NAME}.counters.csv", f"{NAME}.timeline.csv"
OF_COUNTERS: Final = f"{NAME}.counters.json"
FILES: Final = (SAMPLES, JSON, TELEMETRY, COUNTERS, TIMELINE, OF_COUNTERS)
VALUES: Final = "host_time [s]"
"""A column of values in the samples."""

Change = Callable[[Path], object]
"""Changes the results in a machine's folder."""
Lines = list[list[str]]


def write_whole_machine(root: Path, machine: str, study: Study) -> None:
    """Two runs of a small study, the newer with telemetry and every kind of capture."""
    for run in (EARLIER, RUN):
        write_machine(root, machine, study, run=run, rounds=2)
    case = study.headline
    counter = Counter(VARIANT, case, "k(int)", "gpu__time_duration.sum", "ns", 10.0)
    call = Event(VARIANT, 0.0, 1e-6, None, "host call", "cudaLaunchKernel", None, 1)
    set_capture(root, machine, study, "counters", {VARIANT: {}}, [counter])
    set_capture(root, machine, study, "timeline", {VARIANT: {}}, [call])
    reading = [VARIANT, case, "0", RUN, "100.5", "", "30", "1980", "2619", "", "", "", "0"]
    text = f"{','.join(READING_COLUMNS)}\n{','.join(reading)}\n"
    (root / machine / study.name / TELEMETRY).write_text(text)
    sign(root / machine)


def copied(whole: Path, machine: Path) -> Path:
    """A copy of a machine's folder under another name."""
    shutil.copytree(whole, machine)
    for path in machine.rglob("*.json"):
        edit_json(path, lambda content: content.update(machine=machine.name))
    return machine


def sign(machine: Path) -> None:
    """Record the current checksums of all existing files."""
    for name in (JSON, OF_COUNTERS, f"{NAME}.timeline.json"):
        about = machine / STUDY / name
        beside = [about.with_suffix(".csv"), about.with_suffix(".telemetry.csv")]
        with suppress(ValueError, AttributeError, OSError, TypeError):
            content = json.loads(about.read_text())
            content["files"] = {
                one.name: hashlib.sha256(one.read_bytes()).hexdigest()
                for one in beside
                if one.is_file()
            }
            about.write_text(json.dumps(content))


def put(value: Any, *place: str | int, name: str = JSON) -> Change:
    """Set a value in a description, by default that of the run."""

    def edit(content: Any) -> None:
        for part in place[:-1]:
            content = content[part]
        content[place[-1]] = value

    return lambda machine: edit_json(machine / STUDY / name, edit)


def table(name: str, edit: Callable[[Lines], object]) -> Change:
    """Edit the rows of a CSV file, the header among them, and sign it."""

    def change(machine: Path) -> None:
        path = machine / STUDY / name
        lines = list(csv.reader(io.StringIO(path.read_text(), newline="")))
        edit(lines)
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows(lines)
        path.write_text(buffer.getvalue(), newline="")
        sign(machine)

    return change


def cells(line: int, file: str = SAMPLES, **texts: str) -> Change:
    """Change the cells of these columns in a line."""

    def edit(lines: Lines) -> None:
        for column, text in texts.items():
            lines[line - 1][lines[0].index(column)] = text

    return table(file, edit)


def named(column: str) -> Change:
    """Rename a column of values."""
    return cells(1, **{VALUES: column})


def valueless(reason: str) -> Change:
    """Make line 3 a skipped case without a value."""

    def edit(lines: Lines) -> None:
        gone = {column: "" for column in lines[0] if "[" in column}
        row = dict(zip(lines[0], lines[2], strict=True)) | gone
        lines[2] = [*(row | {"status": "skipped", "reason": reason, "verified": "0"}).values()]

    return table(SAMPLES, edit)


def raw(name: str, data: bytes, *, is_signed: bool = False) -> Change:
    """Replace a file, and sign it if asked to."""

    def change(machine: Path) -> None:
        (machine / STUDY / name).write_bytes(data)
        if is_signed:
            sign(machine)

    return change


def replaced(name: str, make: Callable[[Path], object] = lambda _: None) -> Change:
    """Another kind of file, or none, in place of a file or, without a name, of the study."""

    def change(machine: Path) -> None:
        path = machine / STUDY / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        make(path)

    return change


def moved(name: str) -> Change:
    """A link to the file, or to the study, in place of it."""

    def change(machine: Path) -> None:
        path = machine / STUDY / name
        (machine.parent / "published").mkdir(exist_ok=True)
        away = machine.parent / "published" / f"{machine.name}-{path.name}"
        path.rename(away)
        path.symlink_to(away)

    return change


def renamed(old: str, new: str) -> Change:
    return lambda machine: (machine / old).rename(machine / new)


def unsigned(machine: Path) -> None:
    """Change a sample, which is as valid as before."""
    path = machine / STUDY / SAMPLES
    path.write_text(re.sub(r"e-0[1-9]", "e-08", path.read_text(), count=1))


def first_variant_only(lines: Lines) -> None:
    lines[1:] = [line for line in lines[1:] if line[0] == lines[1][0]]


TEXTS: Final[Mapping[str, Sequence[str]]] = {
    "variant": ("other", "<b>"),
    "case": ("calls=<script>", "calls={{7}}", "calls=1,"),
    VALUES: (
        *("0", "-1e-6", "nan", "inf", "1e999", "1e-999", "1_0", "2e5", "1e18", "1e-6 1e-15"),
        *("\u0663", " 1", "0x1p-3", "1e-6  1e-6", "1e-6|1e-6", "1e-6 ", "1e-6 0 1e-6"),
        *("1e-6 nan", "1,5", PAYLOAD, "1 " * 2**20 + "1"),
    ),
    "round": ("64", "-1", "0.5", "\u0661", "1" * 5000),
    "verified": ("2",),
    "status": (PAYLOAD, "skipped"),
    "reason": ("because",),
    "throttle": ("<img>",),
    "sm_mhz": ("high", "1e9"),
    "started_at": ("", "2026-01-02T25:04:05Z", "2025-12-30T03:04:05Z", "2026-02-02T03:04:05Z"),
}
"""Wrong texts of the columns of samples."""

ROWS: Final[dict[str, Change]] = {
    **{
        f"{column} {text[:20]!r}": cells(3, **{column: text})
        for column, texts in TEXTS.items()
        for text in texts
    },
    **{
        f"column {name!r}": named(name)
        for name in ("<b> [s]", "host\ntime [s]", "gpu_time [s]", "host_time [ms]", "host_time")
    },
    **{
        f"skipped for {text[:12]!r}": valueless(text)
        for text in (
            *("", "one\ntwo", "one\0two", "\x1b[31mred", "abc\u202edef", "x" * 2**22),
            *("no file /home/me/x", "GPU-01234567-89ab-cdef-0123-456789abcdef is busy"),
        )
    },
    "a round twice": table(SAMPLES, lambda lines: lines.insert(3, list(lines[2]))),
    "skipped with a value": cells(3, status="skipped", reason="no"),
    "column missing": table(SAMPLES, lambda lines: [row.pop() for row in lines]),
    "cell more": table(SAMPLES, lambda lines: lines[2].append("1")),
    "no header": table(SAMPLES, lambda lines: lines.pop(0)),
    "a variant without rows": table(SAMPLES, first_variant_only),
    "empty samples": raw(SAMPLES, b"", is_signed=True),
    "samples that are no text": raw(SAMPLES, bytes(range(256)), is_signed=True),
    "a quote that does not end": raw(SAMPLES, to_text([]).encode() + b'\n"', is_signed=True),
}
"""Faults of the samples."""

KEYS: Final[dict[str, Change]] = {
    "run of another time": put(name_of(EARLIER), "run"),
    "host of another run": put("00000001", "host", "id"),
    "study of another": put("copy", "study"),
    "machine of another": put("copy", "machine"),
    "checksum of another": put("0" * 64, "files", SAMPLES),
    "checksum of another file": put("0" * 64, "files", "../x.csv"),
    "no samples": put({}, "files"),
    "fewer rounds than samples have": put(1, "rounds"),
    "start before that of the name": put("2026-01-01T00:00:00Z", "start"),
    "end before the start": put("2026-01-02T03:00:00Z", "end"),
    "end in the future": put("2999-01-01T00:00:00Z", "end"),
    "a path": put("python /home/me/hotpath", "command"),
    "half a character": put("\ud800", "command"),
    "a UUID": put("GPU-01234567-89ab-cdef-0123-456789abcdef", "host", "gpus", 0, "gpu"),
    "a long text": put("x" * 20_000, "command"),
    "a key twice": raw(JSON, b'{"run": 1, "run": 2}'),
    "a list": raw(JSON, b"[]"),
    "no JSON": raw(JSON, b"{"),
    "nested deeply": raw(JSON, b"[" * 100_000 + b"]" * 100_000),
    "no text": raw(JSON, b"\xff\xfe{}"),
    "a number of many digits": raw(JSON, b'{"rounds": ' + b"1" * 5000 + b"}"),
    "a number that overflows": raw(JSON, b'{"energy_j": 1e999}'),
    "too long": raw(JSON, b" " * 2**18 + b"{}"),
}
"""Faults of the run's description."""

CAPTURES: Final[dict[str, Change]] = {
    "a value that is no number": cells(2, COUNTERS, value="nan"),
    "an event that ends before it starts": cells(2, TIMELINE, start="2e-6"),
    "an event of another kind": cells(2, TIMELINE, kind=PAYLOAD),
    "negative power": cells(2, TELEMETRY, power_w="-1"),
    "a day that was not": cells(2, TELEMETRY, time="2026-02-29T00:00:00Z"),
    "counters of other columns": cells(1, COUNTERS, unit="units"),
    "counters that are no text": raw(COUNTERS, b"\xff"),
    "counters changed": lambda machine: (machine / STUDY / COUNTERS).open("a").write("\n"),
    "timeline without a whole row": raw(TIMELINE, b"start,end", is_signed=True),
    "capture of another kind": put("timeline", "kind", name=OF_COUNTERS),
    "capture at another time": put("2026-01-03T00:00:00Z", "at", name=OF_COUNTERS),
    "case of a capture with markup": put("<b>", "variants", VARIANT, "case", name=OF_COUNTERS),
}
"""Faults of captures and telemetry."""

KINDS_OF_FILES: Final[dict[str, Change]] = {
    "samples changed": unsigned,
    "samples huge": lambda machine: os.truncate(machine / STUDY / SAMPLES, 2**40),
    **{f"{name.partition('.')[2]} gone": replaced(name) for name in (SAMPLES, JSON, COUNTERS)},
    **{f"{name.partition('.')[2]} a link": moved(name) for name in (SAMPLES, JSON, COUNTERS)},
    **{f"{name.partition('.')[2]} a pipe": replaced(name, os.mkfifo) for name in (SAMPLES, JSON)},
    "samples a link to a device": replaced(SAMPLES, lambda path: path.symlink_to("/dev/zero")),
    "samples a folder": replaced(SAMPLES, Path.mkdir),
    "a link to a secret": lambda machine: (machine / STUDY / "x.csv").symlink_to("/etc/passwd"),
    "a page": lambda machine: (machine / STUDY / f"{NAME}.html").write_text(PAYLOAD),
    "a hidden file": lambda machine: (machine / STUDY / f".{NAME}.csv").write_text(""),
    "a folder within": lambda machine: (machine / STUDY / "inner").mkdir(),
    "a name with braces": renamed(f"{STUDY}/{SAMPLES}", f"{STUDY}/{{run}}.csv"),
    "a name of two lines": renamed(f"{STUDY}/{SAMPLES}", f"{STUDY}/a\nb.csv"),
    "a file in place of a study": lambda machine: (machine / "machine.json").write_text("{}"),
}
"""Faults of files."""

FOLDERS: Final[dict[str, Change]] = {
    "study a link": moved(""),
    "study a pipe": replaced("", os.mkfifo),
    "study with braces": renamed(STUDY, "{calls}"),
    "study with markup": renamed(STUDY, "<b>"),
    "study under the name of another": renamed(STUDY, "copy"),
}
"""Faults of a study's folder, which leave out all of its runs."""

HARMLESS: Final[dict[str, Change]] = {
    "nothing": lambda _machine: None,
    "commit unknown": put(None, "commit"),
    "case that is gone": cells(3, case="calls=101"),
    "metric that is gone": named("cpu_time [s]"),
    "reason with markup": valueless(PAYLOAD),
    "GPU with markup": put(PAYLOAD, "host", "gpus", 0, "gpu"),
    "facts with markup": put({"a": PAYLOAD}, "host", "libraries"),
    "no GPU": put([], "host", "gpus"),
    "compiler with markup": put(PAYLOAD, "compiler", "cxx"),
    "command with markup": put(PAYLOAD, "command"),
    "unmet with markup": put(PAYLOAD, "variants", VARIANT, "unmet"),
    "disturbed with markup": put([{"round": 0, "why": [PAYLOAD]}], "disturbed"),
    "status of a capture with markup": put(
        f"not captured: {PAYLOAD}", "variants", VARIANT, "status", name=OF_COUNTERS
    ),
    "kernel with markup": cells(2, COUNTERS, kernel=PAYLOAD),
    "event with markup": cells(2, TIMELINE, name=PAYLOAD),
    "a half written file": raw(f".{NAME}.csv.partial", b"s"),
    "a file beside the machines": lambda machine: (machine.parent / "README.md").write_text("x"),
}
"""Changes that are no fault, or that are shown unchanged."""

MUTATIONS: Final = {**ROWS, **KEYS, **CAPTURES, **KINDS_OF_FILES, **FOLDERS, **HARMLESS}
"""Every mutation by its name."""


@dataclass(frozen=True)
class Edit:
    """Replaces `count` bytes of `file` by others, from `place` on, which is a share of its length.
    With `is_signed`, the checksums are made to fit."""

    file: str
    place: float
    is_signed: bool
    count: int
    by: bytes


def apply(machine: Path, edits: Sequence[Edit]) -> None:
    for edit in edits:
        path = machine / STUDY / edit.file
        data = path.read_bytes()
        start = int(edit.place * len(data))
        path.write_bytes(data[:start] + edit.by + data[start + edit.count :])
        if edit.is_signed:
            sign(machine)


WORDS: Final = ["", "0", "-1", "1e999", "nan", "null", "[]", "<b>", "\0", "\u202e", PAYLOAD]


def drawn(count: int) -> list[list[Edit]]:
    """`count` reproducible lists of edits."""
    rng = random.Random(count)

    def edit() -> Edit:
        by = rng.choice([*(word.encode() for word in WORDS), rng.randbytes(9)])
        return Edit(rng.choice(FILES), rng.random(), rng.random() < 0.5, rng.randrange(41), by)

    return [[edit() for _ in range(rng.randint(1, 3))] for _ in range(count)]
