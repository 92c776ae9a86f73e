"""The samples of all machines as one table, with stale rows marked."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.base.errors import FieldError, HotpathError, visible
from analysis.results.store.folders import machine_folders
from analysis.results.store.keys import CapturedVariant, CaptureFile, RunFile
from analysis.results.store.published import NOTHING, load_published, published_file
from analysis.results.store.records import CAPTURED
from analysis.results.store.runs import (
    FAULTS,
    Capture,
    Run,
    codes_of,
    newest_host,
    read_machine,
)
from analysis.results.store.samples import MACHINE_LIMIT_SAMPLES, SAMPLE_TYPES, Metric, Row
from analysis.study import Study
from analysis.study.claims.claim import still_named

CELL = ["machine", "study", "variant", "case"]
KEY = [*CELL, "metric", "unit"]
COLUMNS: Final = (
    *("machine", "host", *SAMPLE_TYPES),
    *("stale", "disturbed", "core_copies", "named"),
)


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

    def only(self, machine: str) -> Collected:
        """The results of one machine."""
        return replace(
            self,
            samples=self.samples[self.samples["machine"] == machine],
            machines={name: one for name, one in self.machines.items() if name == machine},
            runs=[run for run in self.runs if run.machine == machine],
            captures=[one for one in self.captures if one.about.machine == machine],
        )

    def without(self, runs: Collection[RunFile], metrics: Collection[str] = ()) -> Collected:
        """All but these runs or, of these runs, all but these metrics."""
        keys = {(run.machine, run.study, run.run) for run in runs}
        rows = zip(*(self.samples[name] for name in ("machine", "study", "run")), strict=True)
        is_gone = np.fromiter((row in keys for row in rows), bool, len(self.samples))
        if metrics:
            is_gone &= self.samples["metric"].isin([*metrics]).to_numpy()
        kept = self.runs if metrics else [run for run in self.runs if run not in runs]
        return replace(self, samples=self.samples[~is_gone], runs=kept)


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
    Results of a study or variant that no longer exists are stale. Fresh samples of a case or metric
    that no longer exists are left out.
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
        if machine not in (None, folder.name):
            continue
        if host := newest_host(folder):
            collected.machines[folder.name] = host.described()
        room = MACHINE_LIMIT_SAMPLES
        for one in read_machine(folder, studies, refuse, only):
            if isinstance(one, Capture):
                collected.captures.append(one)
                continue
            table = _frame(one, studies.get(one.about.study))
            if len(table) > room:
                expected = f"at most {MACHINE_LIMIT_SAMPLES} samples of a machine"
                path = folder / one.about.study / one.about.file_name
                refuse(path, FieldError(f"{path}", expected, "more"))
                continue
            room -= len(table)
            frames.append(table)
            collected.runs.append(one.about)
    collected.runs.sort(key=lambda about: (about.machine, about.study, about.run))
    samples = pd.concat(frames) if frames else pd.DataFrame(columns=COLUMNS)
    collected.samples = samples[[*COLUMNS]].reset_index(drop=True)
    return collected


def _frame(run: Run, study: Study | None) -> pd.DataFrame:
    """The samples of a run in COLUMNS."""
    about = run.about
    disturbed = {one.round for one in about.disturbed}
    copies = {
        number: min(look.copy_bytes_per_s for look in around)
        for number, around in enumerate(pairwise(about.conditions))
    }
    codes = codes_of(study)
    fresh = {name: about.is_fresh(name, codes.get(name)) for name in about.variants}
    table = frame(run.rows)
    table["stale"] = ~table["variant"].map(fresh).astype(bool)
    if study:
        table = table[table["stale"] | _is_known(table, study)]
    named = still_named(about.bounds, study.bounds if study else frozenset())
    return table.assign(
        machine=about.machine,
        host=about.host.id,
        study=about.study,
        run=about.run,
        disturbed=table["round"].isin(disturbed),
        core_copies=[copies.get(number, math.nan) for number in table["round"].tolist()],
        named=pd.Series([named] * len(table), index=table.index, dtype=object),
    )


def _is_known(table: pd.DataFrame, study: Study) -> npt.NDArray[np.bool]:
    """Whether samples are of a case and of a metric that the study still has."""
    cases = {(v.name, case.id) for v in study.variants for case in v.cases}
    cells = zip(table["variant"].tolist(), table["case"].tolist(), strict=True)
    is_case = np.fromiter((cell in cases for cell in cells), bool, len(table))
    return is_case & table["metric"].isin(["", *study.units]).to_numpy()


def frame(rows: Sequence[Row]) -> pd.DataFrame:
    """A table with a row per sample, and one without a value for a skipped or failed case: the
    columns of SAMPLE_TYPES except `study` and `run`."""
    nothing: Mapping[Metric, Sequence[float]] = {("", ""): (np.nan,)}
    cells = [(row, *one) for row in rows for one in (row.values or nothing).items()]
    counts = [len(values) for _, _, values in cells]

    def repeated(values: Iterator[Any], kind: Any = object) -> npt.NDArray[Any]:
        return np.repeat(np.fromiter(values, kind, len(cells)), counts)

    def of_row(name: str, kind: Any = object) -> npt.NDArray[Any]:
        return repeated((getattr(row, name) for row, _, _ in cells), kind)

    return pd.DataFrame(
        {
            "variant": of_row("variant"),
            "case": of_row("case"),
            "metric": repeated(metric for _, (metric, _), _ in cells),
            "unit": repeated(unit for _, (_, unit), _ in cells),
            "value": np.concatenate([[], *(values for _, _, values in cells)]),
            "round": of_row("round", int),
            "sample": np.concatenate([np.arange(0), *map(np.arange, counts)]),
            "verified": of_row("verified", int),
            **{name: of_row(name) for name in ("status", "reason", "throttle")},
            "sm_mhz": of_row("sm_mhz").astype(float),
            "started_at": of_row("started_at"),
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


@dataclass(frozen=True)
class Taken:
    """A variant's part of a capture; `is_fresh` if it is of today's code."""

    capture: Capture
    variant: CapturedVariant
    is_fresh: bool

    @property
    def is_captured(self) -> bool:
        return self.variant.status == CAPTURED

    @property
    def about(self) -> CaptureFile:
        return self.capture.about


def taken_of(
    captures: Iterable[Capture], key: tuple[str, str, str], kind: str, source_sha256: str | None
) -> Taken | None:
    """The capture of a kind of a machine's study's variant: one of today's code, else the newest;
    one that was not captured only where no other was."""
    machine, study, variant = key
    found = [
        Taken(one, entry, entry.source_sha256 == source_sha256)
        for one in captures
        if (one.about.machine, one.about.study, one.about.kind) == (machine, study, kind)
        if (entry := one.about.variants.get(variant))
    ]
    return max(found, key=lambda one: (one.is_captured, one.is_fresh, one.about.at), default=None)
