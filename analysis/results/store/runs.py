"""Runs and captures on disk: found without following a link, checked, added, and deleted.

<root>/<machine>/<study>/<run>.csv, .json, .telemetry.csv
<root>/<machine>/<study>/<run>.<kind>.csv, .json          kind = counters or timeline
<root>/published/<study>.csv
"""

import hashlib
import re
from collections import Counter as Counts
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from analysis.base.errors import UNFORESEEN, FieldError, HotpathError, in_words
from analysis.base.files import remove, write_all
from analysis.base.keys import NAME
from analysis.base.keys import read as read_keys
from analysis.base.reading import decoded, read_bytes, read_json, require_kind
from analysis.base.records import parse_records
from analysis.results.store import keys
from analysis.results.store.keys import MAX_CLOCK_ERROR, RUN, CaptureFile, HostKeys, RunFile
from analysis.results.store.records import Counter, Event, Reading
from analysis.results.store.samples import CSV_LIMIT_BYTES, Row
from analysis.study import Study
from analysis.study.source import fingerprint

PUBLISHED: Final = "published"
MACHINE: Final = re.compile(r"[a-z0-9][a-z0-9-]*")
ABOUT: Final = (".json", ".counters.json", ".timeline.json")
"""Endings of descriptions."""
_FILE: Final = re.compile(
    rf"{RUN.pattern}(?:(\.counters|\.timeline)?\.(?:json|csv)|\.telemetry\.csv)"
)
MAX_FILES: Final = 64
"""Good descriptions of a kind in a study's folder. The newest count."""
KEPT_RUNS: Final = 8
"""Fresh runs of a cell that make an older run superfluous."""
JSON_LIMIT_BYTES: Final = 256 * 2**10
WHOLE_TIMES: Final = ("gpu_time", "host_time", "submit_time", "op_time")
"""Times that the engine takes of whole operations, of any study."""
FAULTS: Final = (HotpathError, OSError, *UNFORESEEN)
"""Errors that a file may cause: the first two by a check, the others without one."""
_RECORDS: Final[Mapping[str, type[Any]]] = {
    ".csv": Row,
    ".telemetry.csv": Reading,
    ".counters.csv": Counter,
    ".timeline.csv": Event,
}
"""Rows of the files, by the end of the file's name."""

File = TypeVar("File", bound=RunFile | CaptureFile)
Cell = tuple[str, str]
"""Variant and case."""
Refuse = Callable[[Path, Exception], None]
"""Hears of each bad file, and why it is left out."""


@dataclass(frozen=True)
class Run:
    """A run whose files agree with each other."""

    about: RunFile
    rows: Sequence[Row]

    def cells(self) -> dict[Cell, bool]:
        """Whether each cell was measured, not skipped."""
        measured = {row.cell for row in self.rows if row.status != "skipped"}
        return {row.cell: row.cell in measured for row in self.rows}


@dataclass(frozen=True)
class Capture:
    """A capture whose files agree with each other; `path` is the file of its records."""

    about: CaptureFile
    path: Path


def ignore(path: Path, error: Exception) -> None:
    """Say nothing of a bad file."""


def reason(path: Path, error: Exception) -> str:
    """Why a bad file is left out."""
    is_foreseen = isinstance(error, HotpathError | OSError)
    return str(error) if is_foreseen else f"{path}: {in_words(error)}"


def listed(folder: Path) -> list[Path]:
    """Content of a folder, in alphabetical order, without half written files; nothing of a link."""
    is_folder = folder.is_dir() and not folder.is_symlink()
    return sorted(p for p in folder.iterdir() if p.suffix != ".partial") if is_folder else []


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def study_folders(root: Path, refuse: Refuse = ignore) -> Iterator[Path]:
    """The folders <machine>/<study> under `root`, in alphabetical order. `refuse` hears of all else
    in their place but files beside machines."""
    machines = [path for path in listed(root) if path.name != PUBLISHED and not _is_plain(path)]
    for machine in _folders(machines, MACHINE, refuse):
        yield from _folders(listed(machine), NAME, refuse)


def _folders(paths: Iterable[Path], form: re.Pattern[str], refuse: Refuse) -> Iterator[Path]:
    """Those of the paths that are folders with names of this form."""
    for path in paths:
        try:
            if not form.fullmatch(path.name):
                raise FieldError(f"{path}", f"a name of the form {form.pattern}", path.name)
            require_kind(path, "d")
        except FAULTS as error:
            refuse(path, error)
        else:
            yield path


def machines(root: Path) -> list[str]:
    """Names of the machines under `root`, in alphabetical order."""
    return list(dict.fromkeys(folder.parent.name for folder in study_folders(root)))


def plain_files(root: Path) -> list[Path]:
    """Every file under `root` that can be results by its name and place, none through a link."""
    found = [(path, _FILE) for folder in study_folders(root) for path in listed(folder)]
    found += [(path, re.compile(rf"{NAME.pattern}\.csv")) for path in listed(root / PUBLISHED)]
    return [path for path, form in found if form.fullmatch(path.name) and _is_plain(path)]


def run_of(path: Path) -> str:
    """The run of a file of a study by its name."""
    return path.name.partition(".")[0]


def description_of(path: Path) -> Path:
    """The description that a file of a study belongs to; FieldError for another file."""
    if found := _FILE.fullmatch(path.name):
        return path.with_name(f"{run_of(path)}{found[3] or ''}.json")
    endings = f"one of {', '.join(ABOUT)}, or .csv in place of .json, or .telemetry.csv"
    raise FieldError(f"{path}", f"<run> and {endings}", path.name)


def existing_description(path: Path) -> Path:
    """The description that a file of a study belongs to; HotpathError if there is none."""
    if not (about := description_of(path)).exists():
        raise HotpathError(f"{path}: ignored: expected {about.name} beside it, got none")
    return about


def described(folder: Path) -> list[Path]:
    """The descriptions of runs in a study's folder, newest first."""
    jsons = (path for path in reversed(listed(folder)) if path.suffix == ".json")
    return [path for path in jsons if RUN.fullmatch(path.stem)]


def codes_of(study: Study | None) -> Mapping[str, str]:
    """The hash of the code of each of the study's variants."""
    return {v.name: fingerprint(study, v) for v in study.variants} if study else {}


def read_about(path: Path, kind: type[File]) -> File:
    """A description, checked against its path; FieldError names the file and the key."""
    about = read_keys(kind, read_json(path, JSON_LIMIT_BYTES), str(path))
    for key, expected in zip(("machine", "study", "file_name"), path.parts[-3:], strict=True):
        if (got := getattr(about, key)) != expected:
            raise FieldError(f"{path}: {key}", f"{expected!r} by the path", got)
    return about


def read(path: Path, study: Study | None, codes: Mapping[str, str] | None = None) -> Run | Capture:
    """The run or capture that the file at `path` describes, all of its files checked. Fresh
    samples, by the study's `codes`, are in its units. HotpathError names the file, its key or line,
    expected and got."""
    run, csv = run_of(path), path.with_suffix(".csv")
    about = read_about(path, RunFile if path.stem == run else CaptureFile)
    known = [csv.name, *[f"{run}.telemetry.csv"] * (path.stem == run)]
    rows: list[Row] = []
    for name, digest in about.files.items():
        if name not in known:
            raise FieldError(f"{path}: files", f"{known}", name)
        content = read_bytes(file := path.with_name(name), CSV_LIMIT_BYTES)
        if (got := hashlib.sha256(content).hexdigest()) != digest:
            raise FieldError(f"{file}: checksum", f"{digest!r} as in {path.name}", got)
        records = parse_records(file, decoded(file, content), _RECORDS[name.removeprefix(run)])
        rows = records if file == csv else rows
    if isinstance(about, CaptureFile):
        return Capture(about, csv)
    begun, start, end = map(datetime.fromisoformat, (about.begun, about.start, about.end))
    if not begun <= start <= end:
        raise FieldError(f"{path}: start, end", f"times in order from {begun} on", (start, end))
    if about.host.id != run[-8:]:
        raise FieldError(f"{path}: host.id", f"the host of {run}", about.host.id)
    fresh = about.fresh(codes_of(study) if codes is None else codes)
    _check_rows(csv, rows, about, study, fresh)
    return Run(about, rows)


def _check_rows(
    path: Path, rows: Sequence[Row], about: RunFile, study: Study | None, fresh: Collection[str]
) -> None:
    """FieldError for a row that comes twice or is of another run or time, a whole time of 0, in a
    fresh row another unit than that of `study`, or a variant without rows."""
    units = study.units if study else {}
    whole_times = {*WHOLE_TIMES, *(study.time_metrics if study else ())}
    moment, rounds = datetime.fromisoformat, max(about.rounds, 1)
    earliest, latest = moment(about.begun) - MAX_CLOCK_ERROR, moment(about.end) + MAX_CLOCK_ERROR
    times = Counts(row.key for row in rows)
    for line, row in enumerate(rows, 2):
        where = f"{path}: line {line}: "
        if times[row.key] > 1:
            raise FieldError(f"{where}variant, case, round", "every row once", row.key)
        if row.variant not in about.variants:
            raise FieldError(f"{where}variant", "one of the run", row.variant)
        if not earliest <= moment(row.started_at) <= latest:
            expected = f"a time from {about.begun} to {about.end}"
            raise FieldError(f"{where}started_at", expected, row.started_at)
        if row.round >= rounds:
            raise FieldError(f"{where}round", f"one below {rounds}", row.round)
        for (metric, unit), values in row.values.items():
            if metric in whole_times and min(values) == 0:
                raise FieldError(f"{where}{metric}", "a time above 0", 0)
            if row.variant in fresh and units.get(metric, unit) != unit:
                raise FieldError(f"{where}{metric}", f"{units[metric]!r} as its unit", unit)
    if missing := sorted(about.variants.keys() - {row.variant for row in rows}):
        raise FieldError(f"{path}: variant", f"samples of {missing}", "none")


def read_study(
    folder: Path,
    study: Study | None,
    refuse: Refuse = ignore,
    suffixes: Sequence[str] = ABOUT,
    codes: Mapping[str, str] | None = None,
) -> Iterator[Run | Capture]:
    """The runs and captures in a study's folder, newest first. `refuse` hears also of files that
    belong to none. `codes` are those of the study."""
    good = Counts[str]()
    paths = listed(folder)
    codes = codes_of(study) if paths and codes is None else codes
    for path in reversed(paths):
        suffix = path.name.removeprefix(run_of(path))
        try:
            if existing_description(path) == path and suffix in suffixes:
                if good[suffix] >= MAX_FILES:
                    raise FieldError(f"{path}", f"at most {MAX_FILES} files {suffix}", "more")
                yield read(path, study, codes)
                good[suffix] += 1
        except FAULTS as error:
            refuse(path, error)


def read_runs(
    folder: Path,
    study: Study | None,
    refuse: Refuse = ignore,
    codes: Mapping[str, str] | None = None,
) -> Iterator[Run]:
    """The runs in a study's folder, newest first; arguments as of `read_study`."""
    runs = read_study(folder, study, refuse, ABOUT[:1], codes)
    return (run for run in runs if isinstance(run, Run))


def read_captures(folder: Path) -> Iterator[Capture]:
    """The captures in a study's folder, newest first."""
    captures = read_study(folder, None, suffixes=ABOUT[1:])
    return (capture for capture in captures if isinstance(capture, Capture))


def newest_host(folder: Path, without: Collection[Path] = ()) -> HostKeys | None:
    """The host of the newest good run in a machine's folder, `without` some descriptions."""
    paths = [path for study in listed(folder) for path in described(study) if path not in without]
    for path in sorted(paths, key=lambda path: path.name, reverse=True):
        with suppress(*FAULTS):
            return read(path, None).about.host
    return None


def add(folder: Path, about: RunFile | CaptureFile, csv_texts: Mapping[str, str]) -> Path:
    """Write a run or a capture into a study's folder: its CSV texts by name, then its description,
    whose path is returned. Completes what a killed process left of the same run."""
    files = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in csv_texts.items()}
    about = about.model_copy(update={"files": files})
    texts = {**csv_texts, about.file_name: keys.text_of(about)}
    for name, text in texts.items():
        limit = JSON_LIMIT_BYTES if name == about.file_name else CSV_LIMIT_BYTES
        if (size := len(text.encode())) > limit:
            raise HotpathError(f"{name}: expected at most {limit} bytes, got {size}")
    write_all({folder / name: text for name, text in texts.items()})
    return folder / about.file_name


def superfluous(runs: Iterable[Run], study: Study) -> list[RunFile]:
    """The descriptions of `runs`, newest first, that no figure needs.

    A measured cell is needed in its newest KEPT_RUNS runs and the newest of each host, a skipped
    one in the newest of each host, a measured one of older code until a newer run has it of
    today's.
    """
    codes, known = codes_of(study), {(v.name, case.id) for v in study.variants for case in v.cases}
    # Hosts of newer runs of today's code, by cell.
    tried: dict[Cell, list[str]] = defaultdict(list)
    measured: dict[Cell, list[str]] = defaultdict(list)
    found = []
    for run in runs:
        host, fresh, is_needed = run.about.host.id, run.about.fresh(codes), False
        for cell, is_measured in run.cells().items():
            hosts = measured[cell]
            if cell not in known or cell[0] not in fresh:
                is_needed |= cell in known and is_measured and not hosts
                continue
            is_needed |= host not in tried[cell]
            tried[cell].append(host)
            if is_measured:
                is_needed |= host not in hosts or len(hosts) < KEPT_RUNS
                hosts.append(host)
        if not is_needed:
            found.append(run.about)
    return found


def discard_superfluous(folder: Path, study: Study) -> list[str]:
    """Delete the runs in a study's folder that no figure needs; bad files stay. Returns the names
    of the deleted descriptions."""
    deleted = superfluous(read_runs(folder, study), study)
    for about in deleted:
        for name in (about.file_name, *about.files):  # a CSV without its description is ignored
            remove(folder / name)
    return [about.file_name for about in deleted]
