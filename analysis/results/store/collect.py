"""The samples of all machines as one table, with stale rows marked."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.base.errors import HotpathError, visible
from analysis.results.store.folders import (
    ABOUT,
    MAX_FILES,
    described,
    listed,
    machine_folders,
    require_machine,
    require_study,
)
from analysis.results.store.keys import HostKeys, RunFile
from analysis.results.store.published import NOTHING, load_published, published_file
from analysis.results.store.runs import (
    FAULTS,
    Capture,
    Run,
    codes_of,
    description_of,
    read_about,
    read_capture,
    read_run,
)
from analysis.results.store.samples import MACHINE_LIMIT_SAMPLES, SAMPLE_TYPES, frame
from analysis.study import Study
from analysis.study.claims.bounds import still_named

CELL = ["machine", "study", "variant", "case"]
KEY = [*CELL, "metric", "unit"]
COLUMNS: Final = (
    *("machine", "host", *SAMPLE_TYPES),
    *("stale", "disturbed", "core_copies", "named"),
)

Refuse = Callable[[Path, str | Exception], None]


@dataclass
class Collected:
    """`samples` has COLUMNS: those of samples, `machine`, `host`, `stale`, `disturbed`: whether
    something disturbed the round, `core_copies`: what one core of the host copied in B/s around
    it, before or after, whichever is less; NaN where that is not known; and `named`, the digests of
    today's claims that the run names, a frozenset. `machines` describes the host of each machine's
    newest run. `runs` and `captures` are those of every
    machine and study that are no error, oldest first; `published` has the rows of `load_published`
    by study; `refused` says of a `<machine>`, `<machine>/<study>`, `<machine>/<study>/<file>` or
    `published/<study>.csv` why it was left out."""

    samples: pd.DataFrame
    machines: dict[str, dict[str, Any]] = field(default_factory=dict)
    runs: list[RunFile] = field(default_factory=list)
    captures: list[Capture] = field(default_factory=list)
    published: dict[str, pd.DataFrame] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def newest_host(folder: Path, without: Collection[Path] = ()) -> HostKeys | None:
    """The host of the newest run in a machine's folder whose description is good and not one of
    `without`."""
    paths = [path for study in listed(folder) for path in described(study) if path not in without]
    for path in sorted(paths, key=lambda path: path.name, reverse=True):
        with suppress(*FAULTS):
            return read_about(path, RunFile).host
    return None


def collect(
    root: Path,
    studies: Mapping[str, Study],
    only: Collection[str] | None = None,
    machine: str | None = None,
) -> Collected:
    """Read every machine under `root` and the published figures of `studies`, and trust no file.

    `only` names the studies whose results are read, by default all with a folder. `machine` names
    the only machine to read.

    A run with a fault is left out, and so is a folder with a wrong name; `refused` has the reasons.
    Results of a study or variant that no longer exists are stale.
    """
    collected = Collected(pd.DataFrame())

    def refuse(path: Path, error: str | Exception) -> None:
        name = path.relative_to(root).as_posix()
        is_foreseen = isinstance(error, HotpathError | OSError | str)
        reason = str(error) if is_foreseen else f"{name}: {type(error).__name__}: {error}"
        collected.refused[visible(name)] = visible(reason.replace(f"{root}/", ""))

    for study in studies.values():
        try:
            collected.published[study.name] = load_published(root, study)
        except FAULTS as error:
            collected.published[study.name] = NOTHING
            refuse(published_file(root, study), error)
    frames: list[pd.DataFrame] = []
    for folder in machine_folders(root):
        if not _is_valid(folder, require_machine, refuse) or machine not in (None, folder.name):
            continue
        if host := newest_host(folder):
            collected.machines[folder.name] = host.described()
        room = MACHINE_LIMIT_SAMPLES
        for inner in listed(folder):
            if only is not None and inner.name not in only:
                continue
            if not _is_valid(inner, require_study, refuse):
                continue
            study_here = studies.get(inner.name)
            codes = codes_of(study_here)
            _refuse_strays(inner, refuse)
            collected.captures += read_captures(inner, refuse)
            for run in read_runs(inner, study_here, refuse):
                table = _frame(run, codes, study_here.bounds if study_here else frozenset())
                room -= len(table)
                if room < 0:
                    limit = f"expected at most {MACHINE_LIMIT_SAMPLES} samples of a machine"
                    refuse(inner / f"{run.about.run}.json", f"{limit}, got more")
                    continue
                frames.append(table)
                collected.runs.append(run.about)
    collected.runs.sort(key=lambda about: (about.machine, about.study, about.run))
    samples = pd.concat(frames) if frames else pd.DataFrame(columns=COLUMNS)
    collected.samples = samples[[*COLUMNS]].reset_index(drop=True)
    return collected


def _is_valid(folder: Path, require: Callable[[Path], None], refuse: Refuse) -> bool:
    """Whether a folder is what it should be; if not, it is refused. An empty one needs no name."""
    try:
        if listed(folder) or folder.is_symlink() or not folder.is_dir():
            require(folder)
            return True
    except (HotpathError, OSError) as error:
        refuse(folder, error)
    return False


def ignore(path: Path, error: str | Exception) -> None:
    """Say nothing of a bad file."""


def read_runs(folder: Path, study: Study | None, refuse: Refuse = ignore) -> Iterator[Run]:
    """The runs in a study's folder, newest first."""
    for path in _newest(folder, ABOUT[0], refuse):
        try:
            yield read_run(path, study)
        except FAULTS as error:
            refuse(path, error)


def read_captures(folder: Path, refuse: Refuse = ignore) -> Iterator[Capture]:
    """The captures in a study's folder, newest first of each kind."""
    for suffix in ABOUT[1:]:
        for path in _newest(folder, suffix, refuse):
            try:
                yield read_capture(path)
            except FAULTS as error:
                refuse(path, error)


def bad_files(folder: Path, study: Study) -> list[tuple[Path, str]]:
    """The files of a study's folder that are left out, with the reason."""
    found: list[tuple[Path, str]] = []

    def refuse(path: Path, error: str | Exception) -> None:
        found.append((path, str(error)))

    for read in (lambda: read_runs(folder, study, refuse), lambda: read_captures(folder, refuse)):
        for _ in read():
            pass
    _refuse_strays(folder, refuse)
    return found


def _newest(folder: Path, suffix: str, refuse: Refuse) -> Iterator[Path]:
    """The descriptions of this suffix that are not too many, newest first."""
    for place, path in enumerate(described(folder, suffix)):
        if place < MAX_FILES:
            yield path
        else:
            refuse(path, f"{path}: expected at most {MAX_FILES} files {suffix}, got more")


def _refuse_strays(folder: Path, refuse: Refuse) -> None:
    """Refuse the files that belong to no run and no capture."""
    for path in listed(folder):
        try:
            if not (about := description_of(path)).exists():
                refuse(path, f"{path}: ignored, because {about.name} is missing")
        except HotpathError as error:
            refuse(path, error)


def _frame(run: Run, codes: Mapping[str, str], bounds: Collection[str]) -> pd.DataFrame:
    """The samples of a run in COLUMNS."""
    about = run.about
    disturbed = {one.round for one in about.disturbed}
    copies = {
        number: min(look.copy_bytes_per_s for look in around)
        for number, around in enumerate(pairwise(about.conditions))
    }
    table = frame(run.rows)
    stale = {name: not about.is_fresh(name, codes.get(name)) for name in about.variants}
    return table.assign(
        machine=about.machine,
        host=about.host.id,
        study=about.study,
        run=about.run,
        stale=table["variant"].map(stale).astype(bool),
        disturbed=table["round"].isin(disturbed),
        core_copies=[copies.get(number, math.nan) for number in table["round"].tolist()],
        named=pd.Series([still_named(about.bounds, bounds)] * len(table), dtype=object),
    )


def visits(samples: pd.DataFrame, studies: Mapping[str, Study]) -> npt.NDArray[np.int64]:
    """The index, from 0, of the visit within its round in which each of `samples` was taken.

    All visits to a cell in one round take the same number of samples, one visit after the other.
    """
    planned = {
        (study.name, case.id): case.visits
        for study in studies.values()
        for variant in study.variants
        for case in variant.cases
    }
    of_round = [
        planned.get(pair, 1)
        for pair in zip(samples["study"].tolist(), samples["case"].tolist(), strict=True)
    ]
    cell = samples.groupby([*KEY, "run", "round"], sort=False)["sample"]
    before = cell.rank(method="first").to_numpy() - 1
    numbers: npt.NDArray[np.int64] = (
        before * np.array(of_round) // cell.transform("size").to_numpy()
    ).astype(np.int64)
    return numbers


def chosen(samples: pd.DataFrame) -> pd.DataFrame:
    """The samples a summary uses: of a variant and case, those of all fresh runs, else of the
    newest run.

    A run that skipped the case counts only where no other did better. Where the output was wrong in
    any round of these, only the rows that say so are left: such a cell has no figure.
    """
    if samples.empty:
        return samples
    kept = samples
    if (is_stale := samples["stale"].astype(bool)).any():
        cell = [samples[name] for name in CELL]
        all_stale = is_stale.groupby(cell, sort=False).transform("all")
        newest = samples["run"].groupby(cell, sort=False).transform("max")
        kept = samples[~is_stale | (all_stale & (samples["run"] == newest))]
    for status, is_worse in (("skipped", True), ("failed", False)):
        if not (has := kept["status"] == status).any():
            continue
        every, some = (
            has.groupby([kept[name] for name in CELL], sort=False).transform(how)
            for how in ("all", "any")
        )
        kept = kept[~has | every] if is_worse else kept[has | ~some]
    return kept.reset_index(drop=True)


def fresh(kept: pd.DataFrame) -> pd.DataFrame:
    """The samples among `kept` that have a value and belong to the current code."""
    return kept[(kept["status"] == "ok") & ~kept["stale"].astype(bool)]
