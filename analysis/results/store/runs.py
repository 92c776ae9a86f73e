"""Runs and captures of a study on a machine: read and checked, added, and deleted."""

from __future__ import annotations

import hashlib
import re
from collections import Counter as Count
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from analysis.base import keys
from analysis.base.errors import FieldError, HotpathError
from analysis.base.files import remove, write_all
from analysis.base.reading import decoded, read_bytes, read_json
from analysis.base.records import parse_records
from analysis.results.store.folders import (
    ABOUT,
    MACHINE,
    MAX_FILES,
    NAME,
    described,
    description_of,
    listed,
    require_named,
    run_of,
)
from analysis.results.store.keys import (
    MAX_CLOCK_ERROR,
    CaptureFile,
    HostKeys,
    RunFile,
    text_of,
)
from analysis.results.store.records import CAPTURED, Counter, Event, Reading
from analysis.results.store.samples import CSV_LIMIT_BYTES, Row, parse_rows
from analysis.study import Study
from analysis.study.source import fingerprint

KEPT_RUNS: Final = 8
"""Fresh runs of a cell that make an older run superfluous."""
JSON_LIMIT_BYTES: Final = 256 * 2**10
WHOLE_TIMES: Final = ("gpu_time", "host_time", "submit_time", "op_time")
"""Times that the engine takes of whole operations, of any study."""
FAULTS: Final = (HotpathError, OSError, ArithmeticError, LookupError, TypeError, ValueError)
"""Errors that a file may cause: the first two by a check, the others without one."""

File = TypeVar("File", RunFile, CaptureFile)
Cell = tuple[str, str]
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
    if path.name != f"{run_of(path)}.json":
        capture = read_about(path, CaptureFile)
        record: type[Any] = {"counters": Counter, "timeline": Event}[capture.kind]
        for text in _texts(path, capture.files, {csv.name}):
            parse_records(csv, text, record)
        return Capture(capture, csv)
    about = read_about(path, RunFile)
    if csv.name not in about.files:
        raise FieldError(f"{path}: files", csv.name, sorted(about.files))
    samples, *readings = _texts(path, about.files, {csv.name, telemetry.name})
    rows = parse_rows(csv, samples)
    for text in readings:
        parse_records(telemetry, text, Reading)
    _check_rows(csv, rows, about, study)
    return Run(about, rows)


def _texts(path: Path, files: Mapping[str, str], known: Collection[str]) -> list[str]:
    """The texts of the files beside a description, by name; FieldError if one is another."""
    if not files.keys() <= {*known}:
        raise FieldError(f"{path}: files", f"{sorted(known)}", sorted(files))
    texts = []
    for name, digest in sorted(files.items()):
        file = path.with_name(name)
        content = read_bytes(file, CSV_LIMIT_BYTES)
        if (got := hashlib.sha256(content).hexdigest()) != digest:
            raise FieldError(f"{file}: checksum", f"{digest!r} as in {path.name}", got)
        texts.append(decoded(file, content))
    return texts


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


def newest_host(folder: Path, without: Collection[Path] = ()) -> HostKeys | None:
    """The host of the newest run in a machine's folder whose files are good and whose description
    is not one of `without`."""
    paths = [path for study in listed(folder) for path in described(study) if path not in without]
    for path in sorted(paths, key=lambda path: path.name, reverse=True):
        with suppress(*FAULTS):
            return read(path, None).about.host
    return None


def ignore(path: Path, error: str | Exception) -> None:
    """Say nothing of a bad file."""


def read_study(
    folder: Path, study: Study | None, refuse: Refuse = ignore, suffixes: Sequence[str] = ABOUT
) -> Iterator[Run | Capture]:
    """The runs and captures in a study's folder, newest first of each kind. `refuse` hears of files
    that belong to none, too."""
    for path in listed(folder):
        try:
            if not (about := description_of(path)).exists():
                refuse(path, f"{path}: ignored, because {about.name} is missing")
        except HotpathError as error:
            refuse(path, error)
    for suffix in suffixes:
        good = 0
        for path in described(folder, suffix):
            try:
                if good >= MAX_FILES:
                    raise FieldError(f"{path}", f"at most {MAX_FILES} files {suffix}", "more")
                yield read(path, study)
                good += 1
            except FAULTS as error:
                refuse(path, error)


def read_runs(folder: Path, study: Study | None, refuse: Refuse = ignore) -> Iterator[Run]:
    """The runs in a study's folder, newest first."""
    found = read_study(folder, study, refuse, ABOUT[:1])
    return (one for one in found if isinstance(one, Run))


def read_captures(folder: Path) -> Iterator[Capture]:
    """The captures in a study's folder, newest first of each kind."""
    found = read_study(folder, None, suffixes=ABOUT[1:])
    return (one for one in found if isinstance(one, Capture))


def read_machine(
    folder: Path, studies: Mapping[str, Study], refuse: Refuse, only: Collection[str] | None = None
) -> Iterator[Run | Capture]:
    """All runs and captures in a machine's folder; `only` names the studies to read. `refuse` hears
    of folders with a wrong name, too."""
    if _is_named(folder, MACHINE, refuse):
        for inner in listed(folder):
            if (only is None or inner.name in only) and _is_named(inner, NAME, refuse):
                yield from read_study(inner, studies.get(inner.name), refuse)


def _is_named(folder: Path, pattern: re.Pattern[str], refuse: Refuse) -> bool:
    """Whether a folder is what it should be; if not, it is refused. An empty one needs no name."""
    try:
        if listed(folder) or folder.is_symlink() or not folder.is_dir():
            require_named(folder, pattern)
            return True
    except (HotpathError, OSError) as error:
        refuse(folder, error)
    return False


def add(folder: Path, about: RunFile | CaptureFile, csv_texts: Mapping[str, str]) -> Path:
    """Write a run or a capture into a study's folder: its CSV texts by name, then its description.

    Returns the path of the description. It completes what a killed process left of the same run.
    """
    files = {file: hashlib.sha256(text.encode()).hexdigest() for file, text in csv_texts.items()}
    path = folder / about.file_name
    texts = {folder / file: text for file, text in csv_texts.items()}
    texts[path] = text_of(about.model_copy(update={"files": files}))
    for file, text in texts.items():
        limit = JSON_LIMIT_BYTES if file == path else CSV_LIMIT_BYTES
        if (size := len(text.encode())) > limit:
            raise HotpathError(f"{file}: expected at most {limit} bytes, got {size}")
    write_all(texts)
    return path


State = Literal["measured", "skipped", "stale"]


@dataclass(frozen=True)
class Held:
    """The cells in a file that today's study has: `measured` or `skipped` by today's code, or
    `stale`. `is_empty` marks a run that skipped everything, `is_capture` a capture, which has
    `skipped` what it could not capture."""

    host: str
    cells: Mapping[Cell, State]
    is_empty: bool = False
    is_capture: bool = False


def superfluous(held: Mapping[str, Held]) -> list[str]:
    """The names that can be deleted, oldest first, of files whose names sort by time.

    A cell of today's code needs the newest KEPT_RUNS files that have it, and the newest of each
    host. It was skipped: the same, of files that have it measured or skipped. A stale cell is
    needed until a file has it of today's code, a captured one until one has captured it. A run that
    skipped everything is needed until its host skips the same again.
    """
    fresh = {cell for one in held.values() for cell, state in one.cells.items() if state != "stale"}
    measured = {c for one in held.values() for c, state in one.cells.items() if state == "measured"}
    newer: Count[tuple[Cell, str]] = Count()
    seen: set[tuple[Cell, str, str]] = set()
    found = []
    for name, one in sorted(held.items(), reverse=True):
        is_needed = False
        for cell, state in one.cells.items():
            if state == "stale":
                is_needed |= cell not in (measured if one.is_capture else fresh)
                continue
            kind = "empty" if one.is_empty else state
            is_enough = one.is_empty or newer[cell, kind] >= KEPT_RUNS
            is_needed |= not (is_enough and (cell, kind, one.host) in seen)
            for counted in {kind, "skipped"} if not one.is_empty else {kind}:
                newer[cell, counted] += 1
                seen.add((cell, counted, one.host))
        if not is_needed:
            found.append(name)
    return found[::-1]


def discard_superfluous(folder: Path, study: Study, host: str = "") -> list[str]:
    """Delete runs and captures that no figure needs, and what was left of runs of this `host` by a
    killed process. Returns the names of the deleted descriptions; bad files stay."""
    deleted = [name for held in _held(folder, study) for name in superfluous(held)]
    for name in deleted:
        remove(folder / name)  # first, as a CSV without it is ignored
    for path in listed(folder):
        with suppress(HotpathError):
            about = description_of(path)
            is_left = host and run_of(path).endswith(f"-{host}") and not about.exists()
            if is_left or about.name in deleted:
                remove(path)
    return deleted


def _held(folder: Path, study: Study) -> Iterator[Mapping[str, Held]]:
    """The cells of runs, and of captures of each kind, by the names of their descriptions."""
    cases = {(v.name, case.id) for v in study.variants for case in v.cases}
    codes = codes_of(study)
    for suffix in ABOUT:
        held: dict[str, Held] = {}
        for one in read_study(folder, study, suffixes=[suffix]):
            cells: dict[Cell, State] = {}
            for cell, is_fresh, is_done in sorted(_cells(one, codes), key=itemgetter(2)):
                if cell in cases:  # a round that has measured it counts
                    cells[cell] = "stale" if not is_fresh else "measured" if is_done else "skipped"
            is_empty = isinstance(one, Run) and one.about.rounds == 0
            is_capture = isinstance(one, Capture)
            held[one.about.file_name] = Held(one.about.host.id, cells, is_empty, is_capture)
        yield held


def _cells(one: Run | Capture, codes: Mapping[str, str]) -> Iterator[tuple[Cell, bool, bool]]:
    """The cells of a run or capture, in any round: whether it is of today's code, and was measured.
    An old failure to capture is of no use."""
    if isinstance(one, Run):
        for row in one.rows:
            is_fresh = one.about.is_fresh(row.variant, codes.get(row.variant))
            yield row.cell, is_fresh, row.status != "skipped"
    else:
        for name, entry in one.about.variants.items():
            is_fresh, is_captured = entry.source_sha256 == codes.get(name), entry.status == CAPTURED
            if is_fresh or is_captured:
                yield (name, entry.case), is_fresh, is_captured
