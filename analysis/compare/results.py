"""Times in run files of this project: a folder of machines, a machine, a study of it or a run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from analysis.base.errors import visible
from analysis.compare.side import Row, Side, run_of
from analysis.results.store.runs import codes_of, described, listed, machines, read_runs
from analysis.results.store.samples import Row as SampleRow
from analysis.study import discover

MACHINE: Final = 0
"""Place of the machine in a row. It only counts if a side has several."""


def study_folders(path: Path) -> list[Path]:
    """The folders of studies with run files: `path` itself, or those of a machine or of machines;
    none if it has no run files."""
    for folders in ([path], listed(path), [s for m in machines(path) for s in listed(path / m)]):
        if found := [folder for folder in folders if described(folder)]:
            return found
    return []


def read_results(name: str, path: Path, run: str = "", metric: str = "") -> Side:
    """The runs in the `study_folders` of `path`, which has some, or the one named `run`. A row is
    the machine, the study, the variant, the case and the time: `metric`, or the preferred one.
    Results count if their code is that of the studies beside them."""
    side = Side(name, optional=(MACHINE,))
    folders = study_folders(path)
    studies = discover(folders[0].resolve().parents[2])

    def refuse(path: Path, error: str | Exception) -> None:
        side.notes.append(f"refused: {visible(str(error))}")

    for folder in folders:
        if not (study := studies.get(folder.name)):
            side.notes.append(f"no study {visible(folder.name)} beside the results")
            continue
        codes = codes_of(study)
        fresh: dict[Row, dict[str, list[SampleRow]]] = {}
        for of_run in read_runs(folder, study, refuse):
            of_today = of_run.about.fresh(codes)
            for row in of_run.rows:
                place: Row = (folder.resolve().parent.name, folder.name, row.variant, row.case)
                if row.variant not in of_today:
                    side.absent.setdefault(place, "stale: its code has changed since")
                elif run in ("", of_run.about.run):
                    fresh.setdefault(place, {}).setdefault(of_run.about.run, []).append(row)
        for place, runs in sorted(fresh.items()):
            side.absent.pop(place, None)
            preferred = study.metrics_for(study.variant(place[2]))
            _add(side, place, runs, (metric,) if metric else preferred)
    return side


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
