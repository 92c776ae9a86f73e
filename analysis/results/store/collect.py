"""The samples of all machines as one table, with stale rows marked."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.base.errors import HotpathError, visible
from analysis.base.records import read_records
from analysis.results.store.consistency import check_described
from analysis.results.store.counters import Counter
from analysis.results.store.folders import (
    check_machine,
    is_empty,
    machine_folders,
    samples_files,
    study_folders,
)
from analysis.results.store.provenance import Provenance
from analysis.results.store.published import NOTHING, load_published, published_file
from analysis.results.store.results import VariantResults, load_variant, read_machine
from analysis.results.store.samples import COLUMNS, MACHINE_LIMIT_SAMPLES
from analysis.results.store.telemetry import Reading
from analysis.results.store.timelines import Event
from analysis.study import Study
from analysis.study.claims.bounds import still_named
from analysis.study.source import fingerprint

CELL = ["machine", "study", "variant", "case"]
KEY = [*CELL, "metric", "unit"]
UNKNOWN_HOST = "unknown"
"""Host of runs that did not record one."""

FAULTS: Final = (HotpathError, OSError, ArithmeticError, LookupError, TypeError, ValueError)
"""Errors that a file may cause: the first two by a check, the others without one."""

VariantKey = tuple[str, str, str]
"""machine, study, variant"""


@dataclass
class Collected:
    """`samples` has the columns of the files, `machine`, `host`, `stale`, `disturbed`: whether
    something disturbed the round, `core_copies`: what one core of the host copied in B/s around
    it, before or after, whichever is less; NaN where that is not known; and `named`, the digests of
    today's claims that the run names, a frozenset. `counters` are those
    captured of a machine, study and variant; `published` has the rows of `load_published` by study;
    `refused` says of a `<machine>`, a `<machine>/<study>` or a `published/<study>.csv` why it was
    left out."""

    samples: pd.DataFrame
    provenance: dict[VariantKey, Provenance] = field(default_factory=dict)
    counters: dict[VariantKey, list[Counter]] = field(default_factory=dict)
    machines: dict[str, dict[str, object]] = field(default_factory=dict)
    published: dict[str, pd.DataFrame] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


@dataclass
class _StudyResults:
    """Results of one study on one machine."""

    frames: list[pd.DataFrame] = field(default_factory=list)
    provenance: dict[VariantKey, Provenance] = field(default_factory=dict)
    counters: dict[VariantKey, list[Counter]] = field(default_factory=dict)


def collect(
    root: Path,
    studies: Mapping[str, Study],
    only: Collection[str] | None = None,
    machine: str | None = None,
) -> Collected:
    """Read every machine under `root` and the published figures of `studies`, and trust no file.

    `only` names the studies whose results are read, by default all with a folder. `machine` names
    the only machine to read.

    A study with a fault on a machine is left out there. A machine with a faulty folder or
    description is left out completely. `refused` has the reasons. Results of a study
    or variant that no longer exists are stale.
    """
    frames: list[pd.DataFrame] = []
    collected = Collected(pd.DataFrame())

    def refuse(folder: Path, error: Exception) -> None:
        name = folder.relative_to(root).as_posix()
        is_foreseen = isinstance(error, HotpathError | OSError)
        reason = str(error) if is_foreseen else f"{name}: {type(error).__name__}: {error}"
        collected.refused[visible(name)] = visible(reason.replace(f"{root}/", ""))

    for study in studies.values():
        try:
            collected.published[study.name] = load_published(root, study)
        except FAULTS as error:
            collected.published[study.name] = NOTHING
            refuse(published_file(root, study), error)
    for folder in machine_folders(root):
        try:
            if is_empty(folder) or machine not in (None, folder.name):
                continue
            check_machine(folder)
            collected.machines[folder.name] = read_machine(folder)
        except FAULTS as error:
            refuse(folder, error)
            continue
        room = MACHINE_LIMIT_SAMPLES
        for inner in study_folders(folder):
            if only is not None and inner.name not in only:
                continue
            try:
                found = _collect_study(inner, studies, room)
            except FAULTS as error:
                refuse(inner, error)
                continue
            frames += found.frames
            room -= sum(map(len, found.frames))
            collected.provenance |= found.provenance
            collected.counters |= found.counters
    columns = ["machine", "host", *COLUMNS, "stale", "disturbed", "core_copies", "named"]
    samples = pd.concat(frames) if frames else pd.DataFrame(columns=columns)
    collected.samples = without_cold_samples(samples, studies)[columns]
    return collected


def without_cold_samples(samples: pd.DataFrame, studies: Mapping[str, Study]) -> pd.DataFrame:
    """`samples` without the first host times of a visit in runs that took none before to discard.

    They are several per cent slower than the next. A visit with a single one keeps it.
    """
    if samples.empty:
        return samples
    by_host = samples["metric"].isin(["host_time", "submit_time"]) & (samples["status"] == "ok")
    is_cold = (by_host & ~samples["is_warm"].astype(bool)).to_numpy()
    cold = samples[is_cold]
    visit = cold.assign(visit=visits(cold, studies)).groupby(
        [*KEY, "run", "round", "visit"], sort=False
    )["sample"]
    is_first = (cold["sample"] == visit.transform("min")) & (visit.transform("size") > 1)
    is_dropped = np.zeros(len(samples), bool)
    is_dropped[is_cold] = is_first
    return samples[~is_dropped]


def _collect_study(folder: Path, studies: Mapping[str, Study], room: int) -> _StudyResults:
    """The content of the folder; HotpathError if it has more than `room` samples."""
    found = _StudyResults()
    for path in samples_files(folder):
        loaded = load_variant(path)
        room -= len(loaded.samples)
        if room < 0:
            raise HotpathError(
                f"{path}: expected at most {MACHINE_LIMIT_SAMPLES} samples of a machine, got more"
            )
        key = (loaded.machine, loaded.study, loaded.variant)
        for kind, record in (("telemetry", Reading), ("timeline", Event)):
            if (capture := path.with_suffix(f".{kind}.csv")).exists():
                read_records(capture, record)
        if (capture := path.with_suffix(".ncu.csv")).exists():
            found.counters[key] = read_records(capture, Counter)
        fresh = _fresh_runs(path, loaded, studies)
        found.frames.append(_frame(loaded, fresh, studies.get(loaded.study)))
        found.provenance[key] = loaded.provenance
    return found


def _fresh_runs(path: Path, loaded: VariantResults, studies: Mapping[str, Study]) -> list[str]:
    """Runs of the current code, checked against study.yaml; none of a removed study or variant."""
    study = studies.get(loaded.study)
    if study is None or loaded.variant not in study.variant_names:
        return []
    fresh = loaded.fresh_runs(fingerprint(study, study.variant(loaded.variant)))
    check_described(path, loaded.samples, fresh, study, loaded.variant)
    return fresh


def _frame(loaded: VariantResults, fresh: list[str], study: Study | None) -> pd.DataFrame:
    """The samples as Collected has them, with `is_warm` where host times had been discarded."""
    runs = loaded.run_provenance()
    hosts = {run: entry["machine"].get("host") or UNKNOWN_HOST for run, entry in runs.items()}
    warm = {run: entry.get("discarded_host_passes", 0) > 0 for run, entry in runs.items()}
    bounds = study.bounds if study else frozenset()
    named = {run: still_named(entry.get("bounds", {}), bounds) for run, entry in runs.items()}
    disturbed = {
        (run, one["round"]) for run, entry in runs.items() for one in entry.get("disturbed", [])
    }
    copies = {
        (run, number): min(look["copy_bytes_per_s"] for look in around)
        for run, entry in runs.items()
        for number, around in enumerate(pairwise(entry.get("conditions") or []))
    }
    columns: dict[str, Any] = {
        name: list(map(attrgetter(name), loaded.samples)) for name in COLUMNS
    }
    # Without an explicit dtype, a column with only skipped cases would have dtype object.
    for name in ("value", "sm_mhz"):
        columns[name] = np.array(columns[name], float)
    run_of = columns["run"]
    rounds = list(zip(run_of, columns["round"], strict=True))
    # Columns added to a table one by one take several times as long.
    return pd.DataFrame(
        {
            "machine": [loaded.machine] * len(run_of),
            **columns,
            "host": [hosts[run] for run in run_of],
            "is_warm": [warm[run] for run in run_of],
            "stale": [run not in fresh for run in run_of],
            "disturbed": [one in disturbed for one in rounds],
            "core_copies": [copies.get(one, math.nan) for one in rounds],
            "named": [named[run] for run in run_of],
        }
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
