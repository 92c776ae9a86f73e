"""Runs and captures on disk: found without following a link, checked, added, and deleted.

<root>/<machine>/<study>/<run>.csv, .json, .telemetry.csv
<root>/<machine>/<study>/<run>.<kind>.csv, .json          kind = counters or timeline
<root>/published/<study>.csv
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter as Counts
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import pandas as pd

from analysis.base import keys
from analysis.base.errors import FieldError, HotpathError
from analysis.base.files import remove, write_all
from analysis.base.keys import NAME
from analysis.base.reading import decoded, read_bytes, read_json, require_kind
from analysis.base.records import parse_records
from analysis.results.store.keys import (
    MAX_CLOCK_ERROR,
    RUN,
    CaptureFile,
    HostKeys,
    RunFile,
    text_of,
)
from analysis.results.store.records import CAPTURED, Counter, Event, Reading
from analysis.results.store.samples import CSV_LIMIT_BYTES, Row, parse_rows
from analysis.study import Study
from analysis.study.source import fingerprint

PUBLISHED: Final = "published"
MACHINE: Final = re.compile(r"[a-z0-9][a-z0-9-]*")
ABOUT: Final = (".json", ".counters.json", ".timeline.json")
"""Endings of descriptions, which are written after the files that they describe."""
_FILE: Final = re.compile(
    rf"{RUN.pattern}(?:(\.counters|\.timeline)?\.(?:json|csv)|\.telemetry\.csv)"
)
MAX_FILES: Final = 64
"""Maximum number of runs of a study on a machine, and of its captures of a kind."""
KEPT_RUNS: Final = 8
"""Fresh runs of a cell that make an older run superfluous."""
JSON_LIMIT_BYTES: Final = 256 * 2**10
WHOLE_TIMES: Final = ("gpu_time", "host_time", "submit_time", "op_time")
"""Times that the engine takes of whole operations, of any study."""
FAULTS: Final = (HotpathError, OSError, ArithmeticError, LookupError, TypeError, ValueError)
"""Errors that a file may cause: the first two by a check, the others without one."""

File = TypeVar("File", RunFile, CaptureFile)
Refuse = Callable[[Path, str | Exception], None]
"""Hears of each bad file, and why it is left out."""


@dataclass(frozen=True)
class Run:
    """A run whose files agree with each other."""

    about: RunFile
    rows: Sequence[Row]


@dataclass(frozen=True)
class Capture:
    """A capture whose files agree with each other; `path` is the file of its records."""

    about: CaptureFile
    path: Path


def ignore(path: Path, error: str | Exception) -> None:
    """Say nothing of a bad file."""


def listed(folder: Path) -> list[Path]:
    """Content of a folder, in alphabetical order, without half written files; nothing of a link."""
    is_folder = folder.is_dir() and not folder.is_symlink()
    return sorted(p for p in folder.iterdir() if p.suffix != ".partial") if is_folder else []


def study_folders(root: Path, refuse: Refuse = ignore) -> Iterator[Path]:
    """The folders <machine>/<study> under `root`, in alphabetical order. `refuse` hears of all else
    in their place but files beside machines."""

    def is_folder(path: Path, form: re.Pattern[str]) -> bool:
        try:
            if not form.fullmatch(path.name):
                raise FieldError(f"{path}", f"a name of the form {form.pattern}", path.name)
            require_kind(path, "d")
        except FAULTS as error:
            refuse(path, error)
            return False
        return True

    for machine in listed(root):
        is_beside = machine.name == PUBLISHED or (machine.is_file() and not machine.is_symlink())
        if not is_beside and is_folder(machine, MACHINE):
            yield from (study for study in listed(machine) if is_folder(study, NAME))


def machines(root: Path) -> list[str]:
    """Names of the machines under `root`, in alphabetical order."""
    return list(dict.fromkeys(folder.parent.name for folder in study_folders(root)))


def plain_files(root: Path) -> list[Path]:
    """Every file under `root` that can be results by its name and place, none through a link."""
    found = [path for folder in study_folders(root) for path in listed(folder)]
    found = [path for path in found if _FILE.fullmatch(path.name)]
    published = re.compile(rf"{NAME.pattern}\.csv")
    found += [path for path in listed(root / PUBLISHED) if published.fullmatch(path.name)]
    return [path for path in found if path.is_file() and not path.is_symlink()]


def run_of(path: Path) -> str:
    """The run of a file of a study by its name."""
    return path.name.partition(".")[0]


def description_of(path: Path) -> Path:
    """The description that a file of a study belongs to; FieldError for another file."""
    if found := _FILE.fullmatch(path.name):
        return path.with_name(f"{run_of(path)}{found[3] or ''}.json")
    endings = f"one of {', '.join(ABOUT)}, or .csv in place of .json, or .telemetry.csv"
    raise FieldError(f"{path}", f"<run> and {endings}", path.name)


def described(folder: Path) -> list[Path]:
    """The descriptions of runs in a study's folder, newest first."""
    jsons = (path for path in reversed(listed(folder)) if path.suffix == ".json")
    return [path for path in jsons if RUN.fullmatch(path.stem)]


def codes_of(study: Study | None) -> Mapping[str, str]:
    """The hash of the code of each of the study's variants."""
    return {v.name: fingerprint(study, v) for v in study.variants} if study else {}


def read_about(path: Path, kind: type[File]) -> File:
    """A description, checked against its path; FieldError names the file and the key."""
    about = keys.read(kind, read_json(path, JSON_LIMIT_BYTES), str(path))
    for key, expected in zip(("machine", "study", "file_name"), path.parts[-3:], strict=True):
        if (got := getattr(about, key)) != expected:
            raise FieldError(f"{path}: {key}", f"{expected!r} by the path", got)
    return about


def read(path: Path, study: Study | None) -> Run | Capture:
    """The run or capture that the file at `path` describes, all of its files checked: by reading,
    measuring, bringing and CI alike. Fresh samples are in the units of `study`.

    HotpathError names the file, the key or line, what was expected and what came.
    """
    csv, telemetry = path.with_suffix(".csv"), path.with_suffix(".telemetry.csv")
    is_run = path.name == f"{run_of(path)}.json"
    about = read_about(path, RunFile) if is_run else read_about(path, CaptureFile)
    records: dict[str, type[Any]] = {csv.name: Row, telemetry.name: Reading}
    if isinstance(about, CaptureFile):
        records = {csv.name: {"counters": Counter, "timeline": Event}[about.kind]}
    if not about.files.keys() <= records.keys():
        raise FieldError(f"{path}: files", f"{[*records]}", sorted(about.files))
    rows: list[Row] = []
    for name, digest in about.files.items():
        file = path.with_name(name)
        content = read_bytes(file, CSV_LIMIT_BYTES)
        if (got := hashlib.sha256(content).hexdigest()) != digest:
            raise FieldError(f"{file}: checksum", f"{digest!r} as in {path.name}", got)
        text, record = decoded(file, content), records[name]
        if record is Row:
            rows = parse_rows(file, text)
        else:
            parse_records(file, text, record)
    if isinstance(about, CaptureFile):
        return Capture(about, csv)
    _check_rows(csv, rows, about, study)
    return Run(about, rows)


def _check_rows(path: Path, rows: Sequence[Row], about: RunFile, study: Study | None) -> None:
    """FieldError for a row that is not of the run or of its time, a whole time of 0, another unit
    than that of `study` if the row is fresh, or a variant without rows."""
    codes, units = codes_of(study), study.units if study else {}
    fresh = {v for v in about.variants if about.is_fresh(v, codes.get(v))}
    whole_times = {*WHOLE_TIMES, *(study.time_metrics if study else ())}
    earliest = datetime.fromisoformat(about.begun) - MAX_CLOCK_ERROR
    latest = datetime.fromisoformat(about.end) + MAX_CLOCK_ERROR
    for line, row in enumerate(rows, 2):
        where = f"{path}: line {line}: "
        if row.variant not in about.variants:
            raise FieldError(f"{where}variant", "one of the run", row.variant)
        if not earliest <= datetime.fromisoformat(row.started_at) <= latest:
            expected = f"a time from {about.begun} to {about.end}"
            raise FieldError(f"{where}started_at", expected, row.started_at)
        if row.round >= max(about.rounds, 1):
            raise FieldError(f"{where}round", f"one below {max(about.rounds, 1)}", row.round)
        for (metric, unit), values in row.values.items():
            if metric in whole_times and min(values) == 0:
                raise FieldError(f"{where}{metric}", "a time above 0", 0)
            if row.variant in fresh and units.get(metric, unit) != unit:
                raise FieldError(f"{where}{metric}", f"{units[metric]!r} as its unit", unit)
    if missing := sorted(about.variants.keys() - {row.variant for row in rows}):
        raise FieldError(f"{path}: variant", f"samples of {missing}", "none")


def read_study(
    folder: Path, study: Study | None, refuse: Refuse = ignore, suffixes: Sequence[str] = ABOUT
) -> Iterator[Run | Capture]:
    """The runs and captures in a study's folder, newest first. `refuse` hears of files that belong
    to none, too."""
    good = Counts[str]()
    for path in reversed(listed(folder)):
        suffix = path.name.removeprefix(run_of(path))
        try:
            if not (about := description_of(path)).exists():
                raise HotpathError(f"{path}: ignored, because {about.name} is missing")
            if path == about and suffix in suffixes:
                if good[suffix] >= MAX_FILES:
                    raise FieldError(f"{path}", f"at most {MAX_FILES} files {suffix}", "more")
                yield read(path, study)
                good[suffix] += 1
        except FAULTS as error:
            refuse(path, error)


def read_runs(folder: Path, study: Study | None, refuse: Refuse = ignore) -> Iterator[Run]:
    """The runs in a study's folder, newest first."""
    runs = read_study(folder, study, refuse, ABOUT[:1])
    return (run for run in runs if isinstance(run, Run))


def read_captures(folder: Path) -> Iterator[Capture]:
    """The captures in a study's folder, newest first."""
    captures = read_study(folder, None, suffixes=ABOUT[1:])
    return (capture for capture in captures if isinstance(capture, Capture))


def newest_host(folder: Path, without: Collection[Path] = ()) -> HostKeys | None:
    """The host of the newest run in a machine's folder whose files are good and whose description
    is not one of `without`."""
    paths = [path for study in listed(folder) for path in described(study) if path not in without]
    for path in sorted(paths, key=lambda path: path.name, reverse=True):
        with suppress(*FAULTS):
            return read(path, None).about.host
    return None


def add(folder: Path, about: RunFile | CaptureFile, csv_texts: Mapping[str, str]) -> Path:
    """Write a run or a capture into a study's folder: its CSV texts by name, then its description.

    Returns the path of the description. It completes what a killed process left of the same run.
    """
    files = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in csv_texts.items()}
    about = about.model_copy(update={"files": files})
    texts = {**csv_texts, about.file_name: text_of(about)}
    for name, text in texts.items():
        limit = JSON_LIMIT_BYTES if name == about.file_name else CSV_LIMIT_BYTES
        if (size := len(text.encode())) > limit:
            raise HotpathError(f"{name}: expected at most {limit} bytes, got {size}")
    write_all({folder / name: text for name, text in texts.items()})
    return folder / about.file_name


HELD: Final = ("name", "host", "cell", "state")
"""Columns of a table with a row for each cell of a file, newest files first. Its state is `stale`
if older code measured it; by today's code, it is `measured` or `skipped`, as by a failed capture.
"""


def needed(held: pd.DataFrame, *, of_captures: bool = False) -> set[str]:
    """The names of files that a figure needs.

    A measured cell is needed in its newest KEPT_RUNS files and the newest of each host, a skipped
    one in the newest of each host. A stale cell is needed until a file has it of today's code, a
    captured one until one has captured it.
    """
    stale, fresh = held[held["state"] == "stale"], held[held["state"] != "stale"]
    measured = fresh[fresh["state"] == "measured"]
    replacing = measured if of_captures else fresh
    kept = [
        stale[~stale["cell"].isin(replacing["cell"])],
        fresh.drop_duplicates(["cell", "host"]),
        measured.drop_duplicates(["cell", "host"]),
        measured[measured.groupby("cell").cumcount() < KEPT_RUNS],
    ]
    return {*pd.concat(kept)["name"]}


def discard_superfluous(folder: Path, study: Study, host: str = "") -> list[str]:
    """Delete runs and captures that no figure needs, and what was left of runs of this `host` by a
    killed process. Returns the names of the deleted descriptions; bad files stay."""
    deleted: list[str] = []
    for suffix in ABOUT:
        files = [*read_study(folder, study, suffixes=[suffix])]
        held = pd.DataFrame([row for one in files for row in _held(one, study)], columns=[*HELD])
        kept = needed(held, of_captures=suffix != ABOUT[0])
        deleted += sorted({one.about.file_name for one in files} - kept)
    for name in deleted:
        remove(folder / name)  # first, as a CSV without it is ignored
    for path in listed(folder):
        with suppress(HotpathError):
            about = description_of(path)
            is_left = host and run_of(path).endswith(f"-{host}") and not about.exists()
            if is_left or about.name in deleted:
                remove(path)
    return deleted


def _held(one: Run | Capture, study: Study) -> Iterator[tuple[str, ...]]:
    """The rows of HELD for the cells of a run or capture that `study` has. Reasons of older code
    are of no use."""
    codes, about = codes_of(study), one.about
    if isinstance(one, Run):
        fresh = {v for v in one.about.variants if one.about.is_fresh(v, codes.get(v))}
        found = {(row.cell, row.status != "skipped") for row in one.rows}
    else:
        variants = one.about.variants.items()
        fresh = {name for name, entry in variants if entry.source_sha256 == codes.get(name)}
        found = {((name, entry.case), entry.status == CAPTURED) for name, entry in variants}
    known = {(v.name, case.id) for v in study.variants for case in v.cases}
    for cell, is_measured in found:
        if cell in known and (is_measured or cell[0] in fresh):
            state = "measured" if is_measured else "skipped"
            state = state if cell[0] in fresh else "stale"
            yield about.file_name, about.host.id, " ".join(cell), state
