"""Runs and captures of a study on a machine: read and checked, added, and deleted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from analysis.base import keys
from analysis.base.errors import HotpathError
from analysis.base.files import remove, write_all
from analysis.base.reading import decoded, read_bytes
from analysis.base.records import read_records
from analysis.base.schema import read_json
from analysis.results.store.counters import Counter
from analysis.results.store.folders import ABOUT, described, listed, run_and_suffix
from analysis.results.store.keys import CaptureFile, RunFile, text_of
from analysis.results.store.samples import CSV_LIMIT_BYTES, Row, parse_rows
from analysis.results.store.telemetry import Reading
from analysis.results.store.timelines import Event
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
Cell = tuple[str, ...]
Codes = Mapping[str, str]
"""Hash of today's code by variant."""


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
    of samples the line. Fresh samples are as `study` describes them."""
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
    """Why a row cannot be of this run, or as `study` describes it if it is fresh."""
    fresh = {v for v, code in codes_of(study).items() if about.is_fresh(v, code)}
    cases = {(v.name, case.id) for v in study.variants for case in v.cases} if study else set()
    units = study.units if study else {}
    whole_times = {*WHOLE_TIMES, *(study.time_metrics if study else ())}

    def fault(row: Row) -> str | None:
        if row.variant not in about.variants:
            return f"variant: expected one of the run, got {row.variant!r}"
        if row.round >= max(about.rounds, 1):
            return f"round: expected one below {max(about.rounds, 1)}, got {row.round}"
        if row.variant in fresh and row.cell not in cases:
            return f"case: expected one of study.yaml, got {row.case!r}"
        for (metric, unit), values in row.values.items():
            if metric in whole_times and min(values) == 0:
                return f"{metric}: expected a time above 0, got 0"
            if row.variant in fresh and units.get(metric) != unit:
                expected = f"in {units[metric]!r}" if metric in units else "one of study.yaml"
                return f"metric: expected {expected}, got {metric!r} in {unit!r}"
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


@dataclass(frozen=True)
class Held:
    """Cells of today's study in a file: those of today's code that were measured, and that were
    skipped, and those of other code."""

    host: str
    measured: frozenset[Cell]
    skipped: frozenset[Cell] = frozenset()
    stale: frozenset[Cell] = frozenset()
    is_empty: bool = False
    """Whether it is a run that skipped everything."""


def superfluous(held: Mapping[str, Held]) -> list[str]:
    """The names that can be deleted, oldest first, of files whose names sort by time.

    A cell of today's code stays until KEPT_RUNS other files have it, one of them of the same host;
    a cell of other code stays until one file has it of today's. A run that skipped everything stays
    until later ones of its host skipped the same.
    """
    kept = dict(sorted(held.items()))
    for name, one in sorted(held.items()):
        others = [other for key, other in kept.items() if key != name]
        later = [o for key, o in kept.items() if key > name and o.is_empty and o.host == one.host]
        again = frozenset[Cell]().union(*(other.skipped for other in later))
        if one.skipped <= again if one.is_empty and one.skipped else _is_covered(one, others):
            del kept[name]
    return sorted(held.keys() - kept.keys())


def _is_covered(one: Held, others: Sequence[Held]) -> bool:
    """Whether the other files have enough of each of its cells, on no fewer hosts."""
    counted = [other for other in others if not other.is_empty]

    def is_repeated(cell: Cell, names: Sequence[str]) -> bool:
        hosts = [o.host for o in counted if any(cell in getattr(o, name) for name in names)]
        return len(hosts) >= KEPT_RUNS and one.host in hosts

    return (
        all(any(cell in o.measured | o.skipped for o in others) for cell in one.stale)
        and all(is_repeated(cell, ("measured",)) for cell in one.measured)
        and all(is_repeated(cell, ("measured", "skipped")) for cell in one.skipped)
    )


def discard_superfluous(folder: Path, study: Study, host: str = "") -> list[str]:
    """Delete runs and captures that no figure needs, and what was left of runs of this `host` by a
    killed process. Returns the names of the deleted descriptions; bad files stay."""
    deleted = []
    for suffix in ABOUT:
        held = dict(_held(folder, suffix, study))
        deleted += superfluous(held)
    for name in deleted:
        remove(folder / name)  # first, as a CSV without it is ignored
    for path in listed(folder):
        with suppress(HotpathError):
            about, (run, _) = description_of(path), run_and_suffix(path)
            is_left = host and run.endswith(f"-{host}") and not about.exists()
            if is_left or about.name in deleted:
                remove(path)
    return deleted


def _held(folder: Path, suffix: str, study: Study) -> Iterator[tuple[str, Held]]:
    codes = codes_of(study)
    cases = {(v.name, case.id) for v in study.variants for case in v.cases}
    for path in described(folder, suffix):
        with suppress(*FAULTS):
            if suffix == ABOUT[0]:
                run = read_run(path, study)
                rows = [row for row in run.rows if row.cell in cases]
                fresh = {v for v in run.about.variants if run.about.is_fresh(v, codes.get(v))}
                good = [row for row in rows if row.variant in fresh]
                yield (
                    path.name,
                    Held(
                        run.about.host.id,
                        frozenset(row.cell for row in good if row.status != "skipped"),
                        frozenset(row.cell for row in good if row.status == "skipped"),
                        frozenset(row.cell for row in rows if row.variant not in fresh),
                        run.about.rounds == 0,
                    ),
                )
            else:
                about = read_about(path, CaptureFile)
                cells = {(v, one.case): one.source_sha256 for v, one in about.variants.items()}
                now = {c for c, code in cells.items() if code == codes.get(c[0])}
                stale = (cells.keys() & cases) - now
                yield path.name, Held(about.host.id, frozenset(now), stale=frozenset(stale))


def description_of(path: Path) -> Path:
    """The description that a file of a study belongs to; HotpathError for another file."""
    run, suffix = run_and_suffix(path)
    of_capture = suffix.replace(".csv", ".json")
    return path.with_name(run + (of_capture if of_capture in ABOUT else ABOUT[0]))
