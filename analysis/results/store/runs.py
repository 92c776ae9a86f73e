"""Runs and captures of a study on a machine: read and checked, added, and deleted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final, Literal, TypeVar

from analysis.base import keys
from analysis.base.errors import FieldError, HotpathError
from analysis.base.files import remove, write_all
from analysis.base.reading import decoded, read_bytes
from analysis.base.records import read_records
from analysis.base.schema import read_json
from analysis.results.store.folders import ABOUT, MAX_FILES, described, listed, run_and_suffix
from analysis.results.store.keys import CaptureFile, HostKeys, RunFile, text_of
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
T = TypeVar("T")
Cell = tuple[str, str]
Codes = Mapping[str, str]
"""Hash of today's code by variant."""
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


def codes_of(study: Study | None) -> Codes:
    """The hash of the code of each of the study's variants."""
    return {v.name: fingerprint(study, v) for v in study.variants} if study else {}


def read_about(path: Path, kind: type[File]) -> File:
    """A description, checked against its path; HotpathError names the file and the key."""
    about = keys.read(kind, read_json(path, JSON_LIMIT_BYTES), str(path))
    keys_of_path = ("machine", "study", "file_name")
    for key, expected in zip(keys_of_path, path.parts[-3:], strict=True):
        if (got := getattr(about, key)) != expected:
            raise HotpathError(f"{path}: {key}: expected {expected!r} by the path, got {got!r}")
    return about


def read_run(path: Path, study: Study | None) -> Run:
    """The run that the file at `path` describes, with its samples; HotpathError names the file, and
    of samples the line. Fresh samples are in the units of `study`."""
    about = read_about(path, RunFile)
    known = {f"{about.run}{suffix}" for suffix in (".csv", ".telemetry.csv")}
    if not {f"{about.run}.csv"} <= about.files.keys() <= known:
        raise HotpathError(f"{path}: files: expected {sorted(known)}, got {sorted(about.files)}")
    texts = {name: _checked_text(path, name, digest) for name, digest in about.files.items()}
    samples = path.with_suffix(".csv")
    rows = parse_rows(samples, texts.pop(samples.name))
    for name in texts:
        read_records(path.with_name(name), Reading)
    _check_rows(samples, rows, _fault_of(about, study))
    if missing := sorted(about.variants.keys() - {row.variant for row in rows}):
        raise HotpathError(f"{samples}: expected samples of {missing}, got none")
    return Run(about, rows)


def read_capture(path: Path) -> Capture:
    """The capture that the file at `path` describes, all of its records checked."""
    about = read_about(path, CaptureFile)
    name = f"{path.stem}.csv"
    if not about.files.keys() <= {name}:
        raise HotpathError(f"{path}: files: expected {[name]}, got {sorted(about.files)}")
    for file, digest in about.files.items():
        _checked_text(path, file, digest)
        read_records(path.with_name(file), {"counters": Counter, "timeline": Event}[about.kind])
    return Capture(about, path.with_name(name))


def newest_host(folder: Path, without: Collection[Path] = ()) -> HostKeys | None:
    """The host of the newest run in a machine's folder whose files are good and whose description
    is not one of `without`."""
    paths = [path for study in listed(folder) for path in described(study) if path not in without]
    for path in sorted(paths, key=lambda path: path.name, reverse=True):
        with suppress(*FAULTS):
            return read_run(path, None).about.host
    return None


def ignore(path: Path, error: str | Exception) -> None:
    """Say nothing of a bad file."""


def read_runs(folder: Path, study: Study | None, refuse: Refuse = ignore) -> Iterator[Run]:
    """The runs in a study's folder, newest first."""
    return _read_all(folder, ABOUT[:1], lambda path: read_run(path, study), refuse)


def read_captures(folder: Path, refuse: Refuse = ignore) -> Iterator[Capture]:
    """The captures in a study's folder, newest first of each kind."""
    return _read_all(folder, ABOUT[1:], read_capture, refuse)


def _read_all(
    folder: Path, suffixes: Sequence[str], read: Callable[[Path], T], refuse: Refuse
) -> Iterator[T]:
    for suffix in suffixes:
        good = 0
        for path in described(folder, suffix):
            try:
                if good >= MAX_FILES:
                    raise FieldError(f"{path}", f"at most {MAX_FILES} files {suffix}", "more")
                found = read(path)
            except FAULTS as error:
                refuse(path, error)
            else:
                good += 1
                yield found


def bad_files(folder: Path, study: Study | None) -> list[tuple[Path, str]]:
    """The files of a study's folder that are left out, with the reason."""
    found: list[tuple[Path, str]] = []

    def refuse(path: Path, error: str | Exception) -> None:
        found.append((path, str(error)))

    for _ in chain(read_runs(folder, study, refuse), read_captures(folder, refuse)):
        pass
    refuse_strays(folder, refuse)
    return found


def refuse_strays(folder: Path, refuse: Refuse) -> None:
    """Refuse the files that belong to no run and no capture."""
    for path in listed(folder):
        try:
            if not (about := description_of(path)).exists():
                refuse(path, f"{path}: ignored, because {about.name} is missing")
        except HotpathError as error:
            refuse(path, error)


def _checked_text(path: Path, name: str, digest: str) -> str:
    """The text of a file beside its description; HotpathError if it is another."""
    file = path.with_name(name)
    content = read_bytes(file, CSV_LIMIT_BYTES)
    if hashlib.sha256(content).hexdigest() != digest:
        raise HotpathError(f"{file}: checksum differs from the one in {path.name}")
    return decoded(file, content)


def _check_rows(path: Path, rows: Sequence[Row], fault: Callable[[Row], str | None]) -> None:
    """HotpathError with the line of the first row that has a `fault`."""
    for place, row in enumerate(rows):
        if found := fault(row):
            raise HotpathError(f"{path}: line {place + 2}: {found}")


def _fault_of(about: RunFile, study: Study | None) -> Callable[[Row], str | None]:
    """Why a row cannot be of this run, or has a metric in another unit than `study` if it is
    fresh."""
    fresh = {v for v, code in codes_of(study).items() if about.is_fresh(v, code)}
    units = study.units if study else {}
    whole_times = {*WHOLE_TIMES, *(study.time_metrics if study else ())}

    def fault(row: Row) -> str | None:
        if row.variant not in about.variants:
            return f"variant: expected one of the run, got {row.variant!r}"
        if row.round >= max(about.rounds, 1):
            return f"round: expected one below {max(about.rounds, 1)}, got {row.round}"
        for (metric, unit), values in row.values.items():
            if metric in whole_times and min(values) == 0:
                return f"{metric}: expected a time above 0, got 0"
            if row.variant in fresh and units.get(metric, unit) != unit:
                return f"{metric}: expected {units[metric]!r} as its unit, got {unit!r}"
        return None

    return fault


def add(folder: Path, about: RunFile | CaptureFile, csv_texts: Mapping[str, str]) -> Path:
    """Write a run or a capture into a study's folder: its CSV texts by name, then its description.

    Returns the path of the description. It completes what a killed process left of the same run.
    """
    files = {file: hashlib.sha256(text.encode()).hexdigest() for file, text in csv_texts.items()}
    text = text_of(about.model_copy(update={"files": files}))
    path = folder / about.file_name
    for file, limit in ((path, JSON_LIMIT_BYTES), *((folder / n, CSV_LIMIT_BYTES) for n in files)):
        size = len((text if file == path else csv_texts[file.name]).encode())
        if size > limit:
            raise HotpathError(f"{file}: expected at most {limit} bytes, got {size}")
    write_all({folder / file: csv_texts[file] for file in files} | {path: text})
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

    A cell of today's code stays until KEPT_RUNS other files have it, one of them of the same host;
    a stale cell stays until one file has it of today's code, a captured one until one has captured
    it; a cell of a run that skipped
    everything stays until a later such run of its host has it.
    """
    kept = dict(sorted(held.items()))
    for name, one in sorted(held.items()):
        if all(_is_covered(cell, state, name, kept) for cell, state in one.cells.items()):
            del kept[name]
    return sorted(held.keys() - kept.keys())


def _is_covered(cell: Cell, state: State, name: str, kept: Mapping[str, Held]) -> bool:
    """Whether other files have enough of a cell of the file `name`."""
    one = kept[name]
    others = {
        key: other
        for key, other in kept.items()
        if key != name and other.cells.get(cell, "stale") != "stale"
    }
    if state == "stale":
        return any(not one.is_capture or o.cells[cell] == "measured" for o in others.values())
    if one.is_empty:
        return any(o.is_empty and o.host == one.host and key > name for key, o in others.items())
    hosts = [
        other.host
        for other in others.values()
        if not other.is_empty and (state == "skipped" or other.cells[cell] == "measured")
    ]
    return len(hosts) >= KEPT_RUNS and one.host in hosts


def discard_superfluous(folder: Path, study: Study, host: str = "") -> list[str]:
    """Delete runs and captures that no figure needs, and what was left of runs of this `host` by a
    killed process. Returns the names of the deleted descriptions; bad files stay."""
    deleted = [name for held in _held(folder, study) for name in superfluous(held)]
    for name in deleted:
        remove(folder / name)  # first, as a CSV without it is ignored
    for path in listed(folder):
        with suppress(HotpathError):
            about, (run, _) = description_of(path), run_and_suffix(path)
            is_left = host and run.endswith(f"-{host}") and not about.exists()
            if is_left or about.name in deleted:
                remove(path)
    return deleted


def _held(folder: Path, study: Study) -> Iterator[Mapping[str, Held]]:
    """The cells of runs, and of captures of each kind, by the names of their descriptions."""
    codes = codes_of(study)
    cases = {(v.name, case.id) for v in study.variants for case in v.cases}
    found: dict[str, dict[str, Held]] = {suffix: {} for suffix in ABOUT}

    def hold(about: RunFile | CaptureFile, cells: Mapping[Cell, State], **kind: bool) -> None:
        known = {cell: state for cell, state in cells.items() if cell in cases}
        suffix = about.file_name.removeprefix(about.file_name.partition(".")[0])
        found[suffix][about.file_name] = Held(about.host.id, known, **kind)

    for run in read_runs(folder, study):
        fresh = {v for v in run.about.variants if run.about.is_fresh(v, codes.get(v))}
        measured = {row.cell for row in run.rows if row.status != "skipped"}
        cells: dict[Cell, State] = {
            row.cell: ("measured" if row.cell in measured else "skipped")
            if row.variant in fresh
            else "stale"
            for row in run.rows
        }
        hold(run.about, cells, is_empty=run.about.rounds == 0)
    for capture in read_captures(folder):
        cells = {}
        for name, one in capture.about.variants.items():
            is_captured = one.status == CAPTURED
            if one.source_sha256 == codes.get(name):
                cells[name, one.case] = "measured" if is_captured else "skipped"
            elif is_captured:  # an old failure is of no use
                cells[name, one.case] = "stale"
        hold(capture.about, cells, is_capture=True)
    return iter(found.values())


def description_of(path: Path) -> Path:
    """The description that a file of a study belongs to; HotpathError for another file."""
    run, suffix = run_and_suffix(path)
    of_capture = suffix.replace(".csv", ".json")
    return path.with_name(run + (of_capture if of_capture in ABOUT else ABOUT[0]))
