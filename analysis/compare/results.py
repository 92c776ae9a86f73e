"""Times in run files of this project: a folder of machines, a machine, a study of it or a run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from analysis.base.errors import visible
from analysis.compare.side import Row, Side, run_of
from analysis.results.store.runs import codes_of, described, listed, machines, read_runs
from analysis.results.store.samples import Row as SampleRow
from analysis.study import discover

PREFERRED: Final = ("gpu_time", "host_time", "op_time")
"""Times of whole operations, for results whose study is unknown."""
MACHINE: Final = 0
"""Place of the machine in a row. It only counts if a side has several."""


def study_folders(path: Path) -> list[Path]:
    """The folders of studies with run files: `path` itself, or those of a machine or of machines;
    none if it has no run files."""
    for folders in ([path], listed(path), [s for m in machines(path) for s in listed(path / m)]):
        if found := [folder for folder in folders if described(folder)]:
            return found
    return []


def read_results(name: str, path: Path, runs: str = "", metric: str = "") -> Side:
    """The runs in the `study_folders` of `path`, which has some. A row is the machine, the study,
    the variant, the case and the time.

    `runs` is a number of newest runs of each variant, a negative number of newest runs to leave
    out, or the start of the runs' times. `metric` replaces the preferred time.
    """
    side = Side(name, optional=(MACHINE,))
    folders = study_folders(path)
    studies = discover(folders[0].resolve().parents[2])
    if not studies:
        side.notes.append("no studies beside the results: the code of each newest run counts")

    def refuse(path: Path, error: str | Exception) -> None:
        side.notes.append(f"refused: {visible(str(error))}")

    for folder in folders:
        study = studies.get(folder.name)
        found = list(read_runs(folder, study, refuse))
        # Runs are newest first. Without studies, the code of each newest run counts.
        newest = {v: a.source_sha256 for r in found[::-1] for v, a in r.about.variants.items()}
        codes = codes_of(study) if studies else newest
        for variant in sorted({name for run in found for name in run.about.variants}):
            of_variant = [run for run in found if variant in run.about.variants]
            fresh = [r for r in of_variant if r.about.is_fresh(variant, codes.get(variant))]
            chosen = _chosen([run.about.run for run in fresh], runs)
            known = study and next((v for v in study.variants if v.name == variant), None)
            times = study.metrics_for(known) if study and known else PREFERRED
            of_case: dict[str, dict[str, list[SampleRow]]] = {}
            for run in of_variant:
                for row in (row for row in run.rows if row.variant == variant):
                    of_run = of_case.setdefault(row.case, {}).setdefault(run.about.run, [])
                    of_run.append(row)
            for case, of_runs in sorted(of_case.items()):
                place = (folder.resolve().parent.name, folder.name, variant, case)
                if kept := {run: rows for run, rows in of_runs.items() if run in chosen}:
                    _add(side, place, kept, (metric,) if metric else times)
                elif not fresh:
                    side.absent[place] = "stale: its code has changed since"
    return side


def _chosen(runs: Sequence[str], which: str) -> Sequence[str]:
    """The selection `which` from `runs`, newest first: a number of runs, or the start of a time."""
    if which.removeprefix("-").isdecimal() and len(which) < 4:
        count = int(which)
        return runs[:count] if count > 0 else runs[-count:]
    start = re.sub("[-:]", "", which)
    return [run for run in runs if run.replace("-", "").startswith(start)]


def _add(
    side: Side, place: Row, runs: Mapping[str, Sequence[SampleRow]], times: Sequence[str]
) -> None:
    """Add a case by the first of `times` above 0: the medians of rounds are a run's samples."""
    reasons = {row.status: visible(row.reason) for rows in runs.values() for row in rows}
    if "failed" in reasons:
        side.absent[place] = f"failed: {reasons['failed']}"
        return
    for metric in times:
        for run, rounds in sorted(runs.items()):
            values = [[v for v in row.values.get((metric, "s"), ()) if v > 0] for row in rounds]
            if medians := [float(np.median(of_round)) for of_round in values if of_round]:
                side.runs.setdefault((*place, metric), []).append(run_of(medians, run))
        if (*place, metric) in side.runs:
            return
    side.absent[place] = reasons.get("skipped", "no time")
