"""Spoils a machine's results: a cell or key of each format, whole files, folders, random bytes."""

import csv
import hashlib
import io
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from analysis.base.records import write_records
from analysis.results.store.records import Counter, Event, Reading
from analysis.study import Study
from tests.editing import edit_json, replace_in
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

Change = Callable[[Path], object]
"""Changes a path, or the results in a machine's folder."""
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
    reading = Reading(VARIANT, case, 0, RUN, 100.5, None, 30.0, 1980.0, 2619.0, "", None, None, 0)
    write_records(root / machine / study.name / TELEMETRY, Reading, [reading])
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
        with suppress(ValueError, AttributeError, OSError, TypeError):
            content = json.loads(about.read_text())
            content["files"] = {
                one.name: hashlib.sha256(one.read_bytes()).hexdigest()
                for one in (about.with_suffix(".csv"), about.with_suffix(".telemetry.csv"))
                if one.is_file()
            }
            about.write_text(json.dumps(content))


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


def spoiled(name: str, place: str, value: Any) -> Change:
    """Put a value at `line/column` of a CSV file, or below `key/key` of a JSON file."""
    *parents, key = place.split("/")

    def cell(lines: Lines) -> None:
        row = lines[int(parents[0]) - 1]
        for column, text in (value if isinstance(value, dict) else {key: value}).items():
            row[lines[0].index(column)] = text

    def member(content: Any) -> None:
        for part in parents:
            content = content[int(part) if isinstance(content, list) else part]
        content[key] = value

    if name.endswith(".csv"):
        return table(name, cell)
    return lambda machine: edit_json(machine / STUDY / name, member)


SKIPPED: Final = {"host_time [s]": "", "gpu_time [s]": "", "status": "skipped", "verified": "0"}
WRONG_DAYS: Final = ("2026-01-02T25", "2025-12-30T03", "2026-02-02T03")
LINES: Final = ("", "one\ntwo", "one\0two", "\x1b[31mred", "abc\u202edef", "x" * 2**22)
PRIVATE: Final = ("in /home/me/x", "GPU-01234567-89ab-cdef-0123-456789abcdef")
WRONG: Final[Mapping[str, Mapping[str, Sequence[Any]]]] = {
    SAMPLES: {
        "1/host_time [s]": ("<b> [s]", "host\ntime [s]", "gpu_time [s]", "host_time [ms]", "time"),
        "3/variant": ("other", "<b>"),
        "3/case": ("calls=<script>", "calls={{7}}", "calls=1,"),
        "3/host_time [s]": (
            *("0", "-1e-6", "nan", "inf", "1e999", "1e-999", "1_0", "2e5", "1e18", "1e-6 1e-15"),
            *("\u0663", " 1", "0x1p-3", "1e-6  1e-6", "1e-6|1e-6", "1e-6 ", "1e-6 0 1e-6"),
            *("1e-6 nan", "1,5", PAYLOAD, "1 " * 2**20 + "1"),
        ),
        "3/round": ("64", "-1", "0.5", "\u0661", "1" * 5000),
        "3/verified": ("2",),
        "3/status": (PAYLOAD, "skipped", {"status": "skipped", "reason": "no"}),
        "3/reason": ("because", *({**SKIPPED, "reason": text} for text in (*LINES, *PRIVATE))),
        "3/throttle": ("<img>",),
        "3/sm_mhz": ("high", "1e9"),
        "3/started_at": ("", *(f"{day}:04:05Z" for day in WRONG_DAYS)),
    },
    TELEMETRY: {"2/power_w": ("-1",), "2/time": ("2026-02-29T00:00:00Z",), "2/gpu": ("",)},
    COUNTERS: {"1/unit": ("units",), "2/value": ("nan",), "2/case": ("<b>",)},
    TIMELINE: {"2/start": ("2e-6",), "2/kind": (PAYLOAD,), "2/stream": ("a",)},
    JSON: {
        "run": (name_of(EARLIER),),
        "study": ("copy",),
        "machine": ("copy",),
        "files": ({}, {SAMPLES: "0" * 64}, {"../x.csv": "0" * 64}),
        "rounds": (1,),
        "start": ("2026-01-01T00:00:00Z",),
        "end": ("2026-01-02T03:00:00Z", "2999-01-01T00:00:00Z"),
        "command": (*PRIVATE, "half a character \ud800", "x" * 20_000),
        "host/id": ("00000001",),
        "host/gpus/0/gpu": PRIVATE[1:],
    },
    OF_COUNTERS: {
        "kind": ("timeline",),
        "at": ("2026-01-03T00:00:00Z",),
        f"variants/{VARIANT}/case": ("<b>",),
    },
}
"""Wrong values, by file and place."""
RIGHT: Final[Mapping[str, Mapping[str, Sequence[Any]]]] = {
    SAMPLES: {
        "3/case": ("calls=101",),
        "1/host_time [s]": ("cpu_time [s]",),
        "3/reason": ({**SKIPPED, "reason": PAYLOAD},),
    },
    COUNTERS: {"2/kernel": (PAYLOAD,)},
    TIMELINE: {"2/name": (PAYLOAD,)},
    JSON: {
        "commit": (None,),
        "command": (PAYLOAD,),
        "host/gpus": ([],),
        "host/gpus/0/gpu": (PAYLOAD,),
        "host/libraries": ({"a": PAYLOAD},),
        "compiler/cxx": (PAYLOAD,),
        f"variants/{VARIANT}/unmet": (PAYLOAD,),
        "disturbed": ([{"round": 0, "why": [PAYLOAD]}],),
    },
    OF_COUNTERS: {f"variants/{VARIANT}/status": (f"not captured: {PAYLOAD}",)},
}
"""Values that are no fault, and that are shown unchanged."""


def named(values: Mapping[str, Mapping[str, Sequence[Any]]]) -> Iterator[tuple[str, Change]]:
    """A change for each value, by the end of the file's name, the place and the value."""
    for name, places in values.items():
        for place, of_place in places.items():
            for value in of_place:
                shown = value.get("reason", value) if isinstance(value, dict) else value
                ending = name.removeprefix(f"{NAME}.")
                yield f"{ending} {place} {str(shown)[:20]!r}", spoiled(name, place, value)


def on(name: str, *changes: Change) -> Change:
    """Changes of a file in the study's folder or, without a name, of the folder."""

    def change(machine: Path) -> None:
        for one in changes:
            one(machine / STUDY / name)

    return change


def written(data: bytes) -> Change:
    return lambda path: path.write_bytes(data)


def signed(path: Path) -> None:
    sign(path.parents[1])


def gone(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def linked(path: Path) -> None:
    """A link to the file or folder in place of it."""
    elsewhere = path.parents[1] if path.name != STUDY else path.parent
    (elsewhere.parent / "published").mkdir(exist_ok=True)
    target = elsewhere.parent / "published" / f"{elsewhere.name}-{path.name}"
    path.symlink_to(path.rename(target))


def renamed(name: str) -> Change:
    return lambda path: path.rename(path.with_name(name))


def link_to(target: str) -> Change:
    return lambda path: path.symlink_to(target)


DATA: Final[Mapping[str, bytes]] = {
    "empty": b"",
    "no text": bytes(range(256)),
    "nothing that ends": b'{"a": [',
    "a list": b"[]",
    "too long": b" " * 2**18 + b"{}",
}
REPLACED: Final[Mapping[str, Sequence[Change]]] = {
    "gone": [gone],
    "a link": [linked],
    "a pipe": [gone, os.mkfifo],
    "no text": [written(DATA["no text"]), signed],
    "empty": [written(b""), signed],
}
WHOLE: Final[dict[str, Change]] = {
    **{f".json is {what}": on(JSON, written(data)) for what, data in DATA.items()},
    **{
        f"{name.removeprefix(NAME)} is {what}": on(name, *changes)
        for name in (SAMPLES, JSON, COUNTERS)
        for what, changes in REPLACED.items()
    },
    ".csv is a link to a device": on(SAMPLES, gone, link_to("/dev/zero")),
    ".csv is a folder": on(SAMPLES, gone, Path.mkdir),
    ".csv is huge": on(SAMPLES, lambda path: os.truncate(path, 2**40)),
    ".csv is unsigned": on(SAMPLES, lambda path: replace_in(path, "e-06", "e-07")),
    ".csv has columns in another order": table(
        SAMPLES, lambda lines: lines[0].__setitem__(slice(-2, None), lines[0][:-3:-1])
    ),
    ".csv has a metric in two units": table(
        SAMPLES, lambda lines: lines[0].__setitem__(slice(3, 5), ["time [s]", "time [1]"])
    ),
    ".csv lacks a column": table(SAMPLES, lambda lines: [row.pop() for row in lines]),
    ".csv lacks its header": table(SAMPLES, lambda lines: lines.pop(0)),
    ".csv has a round twice": table(SAMPLES, lambda lines: lines.insert(3, list(lines[2]))),
    ".csv has a longer row": table(SAMPLES, lambda lines: lines[2].append("1")),
    ".csv lacks a variant": table(SAMPLES, lambda lines: lines.__delitem__(slice(2, None))),
    "a link to a secret": on("x.csv", link_to("/etc/passwd")),
    "a page": on(f"{NAME}.html", Path.touch),
    "a hidden file": on(f".{NAME}.csv", Path.touch),
    "a folder within": on("inner", Path.mkdir),
    "a name with braces": on(SAMPLES, renamed("{run}.csv")),
    "a name of two lines": on(SAMPLES, renamed("a\nb.csv")),
    "a file in place of a study": on("../machine.json", Path.touch),
}
"""Faults of whole files."""
FOLDERS: Final[dict[str, Change]] = {
    "study is a link": on("", linked),
    "study is a pipe": on("", gone, os.mkfifo),
    "study with braces": on("", renamed("{calls}")),
    "study with markup": on("", renamed("<b>")),
    "study under the name of another": on("", renamed("copy")),
}
"""Faults of a study's folder, which leave out all of its runs."""
HARMLESS: Final[dict[str, Change]] = {
    **dict(named(RIGHT)),
    "nothing": on(""),
    "a half written file": on(f".{NAME}.csv.partial", Path.touch),
    "a file beside the machines": on("../../README.md", Path.touch),
}
"""Changes that are no fault."""
MUTATIONS: Final = {**dict(named(WRONG)), **WHOLE, **FOLDERS, **HARMLESS}
"""Every change by its name."""
Edit = tuple[str, float, bool, int, bytes]
"""A file; a place in it, as a share of its length; whether the checksum is made to fit; a number of
bytes, and those that replace them."""


def apply(machine: Path, edits: Sequence[Edit]) -> None:
    for name, place, is_signed, length, new in edits:
        data = (machine / STUDY / name).read_bytes()
        start = int(place * len(data))
        spoilt = written(data[:start] + new + data[start + length :])
        on(name, spoilt, *[signed] * is_signed)(machine)


def drawn(count: int) -> list[list[Edit]]:
    """`count` reproducible lists of edits."""
    rng = random.Random(count)
    words = ["", "0", "-1", "1e999", "nan", "null", "[]", "<b>", "\0", "\u202e", PAYLOAD]

    def edit() -> Edit:
        new = rng.choice([*map(str.encode, words), rng.randbytes(9)])
        return rng.choice(FILES), rng.random(), rng.random() < 0.5, rng.randrange(41), new

    return [[edit() for _ in range(rng.randint(1, 3))] for _ in range(count)]
