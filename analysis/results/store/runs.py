"""Runs and captures on disk: found without following a link, checked, added, and deleted.

<root>/<machine>/<study>/<run>.csv, .json, .telemetry.csv
<root>/<machine>/<study>/<run>.<kind>.csv, .json          kind = counters or timeline
<root>/published/<study>.csv
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from analysis.base import keys
from analysis.base.errors import FieldError, HotpathError
from analysis.base.files import remove, write_all
from analysis.base.reading import decoded, read_bytes, read_json, require_folder
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
from analysis.study import CAPTURE_KINDS, Study
from analysis.study import NAME as NAME
from analysis.study.source import fingerprint

PUBLISHED: Final = "published"
MACHINE: Final = re.compile(r"[a-z0-9][a-z0-9-]*")
ABOUT: Final = (".json", *(f".{kind}.json" for kind in CAPTURE_KINDS))
"""Endings of files that describe others and are written after them."""
_FILE: Final = re.compile(
    rf"({RUN.pattern})(?:(\.(?:{'|'.join(CAPTURE_KINDS)}))?\.(?:json|csv)|\.telemetry\.csv)"
)
PARTIAL: Final = ".partial"
"""Ending of a file that is not yet written; an interrupted run may leave one."""
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


def listed(folder: Path) -> list[Path]:
    """Content of a folder, in alphabetical order, without half written files; nothing of a link."""
    is_folder = folder.is_dir() and not folder.is_symlink()
    return sorted(p for p in folder.iterdir() if p.suffix != PARTIAL) if is_folder else []


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def machine_folders(root: Path) -> list[Path]:
    """All entries under `root` in the place of machines' folders, valid or not."""
    return [path for path in listed(root) if not _is_plain(path) and path.name != PUBLISHED]


def machines(root: Path) -> list[str]:
    """Names of the machines under `root`, in alphabetical order."""
    names = (path.name for path in machine_folders(root) if listed(path))
    return [name for name in names if MACHINE.fullmatch(name)]


def run_of(path: Path) -> str:
    """The run of a file of a study by its name."""
    return path.name.partition(".")[0]


def description_of(path: Path) -> Path:
    """The description that a file of a study belongs to; FieldError for another file."""
    if found := _FILE.fullmatch(path.name):
        return path.with_name(f"{run_of(path)}{found[4] or ''}.json")
    endings = [*ABOUT, *(about.replace(".json", ".csv") for about in ABOUT), ".telemetry.csv"]
    raise FieldError(f"{path}", f"<run> and one of {', '.join(endings)}", path.name)


def described(folder: Path, suffix: str = ABOUT[0]) -> list[Path]:
    """The descriptions of runs in a study's folder, or those of captures, newest first."""
    paths = (path for path in reversed(listed(folder)) if RUN.fullmatch(run_of(path)))
    return [path for path in paths if path.name == run_of(path) + suffix]


def plain_files(root: Path) -> Iterator[Path]:
    """Every file under `root` that can be results by its name and place, none through a link."""
    studies = [study for machine in machines(root) for study in listed(root / machine)]
    of_runs = [p for s in studies if NAME.fullmatch(s.name) for p in listed(s)]
    yield from (path for path in of_runs if _FILE.fullmatch(path.name) and _is_plain(path))
    for path in listed(root / PUBLISHED):
        if NAME.fullmatch(path.stem) and path.suffix == ".csv" and _is_plain(path):
            yield path


def require_named(folder: Path, pattern: re.Pattern[str]) -> None:
    """HotpathError unless it is a folder with a name of a machine, MACHINE, or a study, NAME."""
    if not pattern.fullmatch(folder.name):
        raise FieldError(f"{folder}", f"a name of the form {pattern.pattern}", folder.name)
    require_folder(folder)


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
        for text in _texts(path, capture.files, {csv.name}).values():
            parse_records(csv, text, record)
        return Capture(capture, csv)
    about = read_about(path, RunFile)
    texts = _texts(path, about.files, {csv.name, telemetry.name})
    if csv.name not in texts:
        raise FieldError(f"{path}: files", csv.name, sorted(texts))
    rows = parse_rows(csv, texts[csv.name])
    if telemetry.name in texts:
        parse_records(telemetry, texts[telemetry.name], Reading)
    _check_rows(csv, rows, about, study)
    return Run(about, rows)


def _texts(path: Path, files: Mapping[str, str], known: Collection[str]) -> dict[str, str]:
    """The texts of the files beside a description, by name; FieldError if one is another."""
    if not files.keys() <= {*known}:
        raise FieldError(f"{path}: files", f"{sorted(known)}", sorted(files))
    texts = {}
    for name, digest in files.items():
        file = path.with_name(name)
        content = read_bytes(file, CSV_LIMIT_BYTES)
        if (got := hashlib.sha256(content).hexdigest()) != digest:
            raise FieldError(f"{file}: checksum", f"{digest!r} as in {path.name}", got)
        texts[name] = decoded(file, content)
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
    runs = read_study(folder, study, refuse, ABOUT[:1])
    return (run for run in runs if isinstance(run, Run))


def read_captures(folder: Path) -> Iterator[Capture]:
    """The captures in a study's folder, newest first of each kind."""
    captures = read_study(folder, None, suffixes=ABOUT[1:])
    return (capture for capture in captures if isinstance(capture, Capture))


def read_machine(
    folder: Path, studies: Mapping[str, Study], refuse: Refuse, only: Collection[str] | None = None
) -> Iterator[Run | Capture]:
    """All runs and captures in a machine's folder; `only` names the studies to read. `refuse` hears
    of folders with a wrong name, too. An empty one needs no name."""

    def is_named(place: Path, pattern: re.Pattern[str]) -> bool:
        try:
            if listed(place) or place.is_symlink() or not place.is_dir():
                require_named(place, pattern)
        except (HotpathError, OSError) as error:
            refuse(place, error)
            return False
        return True

    for inner in listed(folder) if is_named(folder, MACHINE) else ():
        if (only is None or inner.name in only) and is_named(inner, NAME):
            yield from read_study(inner, studies.get(inner.name), refuse)


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


State = Literal["measured", "skipped", "empty", "stale"]
Held = tuple[str, Mapping[Cell, State]]
"""The host of a file, and its cells that today's study has: measured or skipped by today's code,
`empty` if a run skipped everything, or stale. A capture skipped what it could not capture."""


def superfluous(held: Mapping[str, Held], *, of_captures: bool = False) -> list[str]:
    """The names that can be deleted, oldest first, of files whose names sort by time.

    A cell of today's code needs the newest KEPT_RUNS files that have it, and the newest of each
    host. It was skipped: the same, of files that have it measured or skipped. A stale cell is
    needed until a file has it of today's code, a captured one until one has captured it. A run that
    skipped everything is needed until its host skips the same again.
    """
    replacing = {"measured"} if of_captures else {"measured", "skipped", "empty"}
    states = [item for _, cells in held.values() for item in cells.items()]
    replaced = {cell for cell, state in states if state in replacing}
    hosts: defaultdict[tuple[Cell, State], list[str]] = defaultdict(list)  # of newer files

    def is_needed(host: str, cell: Cell, state: State) -> bool:
        if state == "stale":
            return cell not in replaced
        newer = hosts[cell, state]
        return host not in newer or (state != "empty" and len(newer) < KEPT_RUNS)

    found = []
    for name, (host, cells) in sorted(held.items(), reverse=True):
        if not any(is_needed(host, *item) for item in cells.items()):
            found.append(name)
        for cell, state in cells.items():
            hosts[cell, state].append(host)
            if state == "measured":
                hosts[cell, "skipped"].append(host)
    return found[::-1]


def discard_superfluous(folder: Path, study: Study, host: str = "") -> list[str]:
    """Delete runs and captures that no figure needs, and what was left of runs of this `host` by a
    killed process. Returns the names of the deleted descriptions; bad files stay."""
    deleted: list[str] = []
    for suffix in ABOUT:
        files = read_study(folder, study, suffixes=[suffix])
        held = {one.about.file_name: _held(one, study) for one in files}
        deleted += superfluous(held, of_captures=suffix != ABOUT[0])
    for name in deleted:
        remove(folder / name)  # first, as a CSV without it is ignored
    for path in listed(folder):
        with suppress(HotpathError):
            about = description_of(path)
            is_left = host and run_of(path).endswith(f"-{host}") and not about.exists()
            if is_left or about.name in deleted:
                remove(path)
    return deleted


def _held(one: Run | Capture, study: Study) -> Held:
    """The cells of a run or capture. An old failure to capture is of no use."""
    codes = codes_of(study)
    cells: dict[Cell, State] = {}
    if isinstance(one, Run):
        is_fresh = {v: one.about.is_fresh(v, codes.get(v)) for v in one.about.variants}
        for row in one.rows:
            if not is_fresh[row.variant]:
                cells[row.cell] = "stale"
            elif row.status != "skipped":  # a round that has measured it counts
                cells[row.cell] = "measured"
            else:
                cells.setdefault(row.cell, "skipped" if one.about.rounds else "empty")
    else:
        for name, entry in one.about.variants.items():
            is_captured = entry.status == CAPTURED
            if entry.source_sha256 == codes.get(name):
                cells[name, entry.case] = "measured" if is_captured else "skipped"
            elif is_captured:
                cells[name, entry.case] = "stale"
    known = {(v.name, case.id) for v in study.variants for case in v.cases}
    return one.about.host.id, {cell: state for cell, state in cells.items() if cell in known}
