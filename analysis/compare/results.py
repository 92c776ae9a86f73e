"""Times in results of this project: a folder of machines, one machine, or some of its runs, in the
working tree or at a revision."""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from analysis.base.errors import HotpathError, visible
from analysis.compare.side import Row, Run, Side, spread_of
from analysis.results.store.folders import described, listed, machines
from analysis.results.store.runs import Run as StoredRun
from analysis.results.store.runs import codes_of, read_runs
from analysis.results.store.samples import Row as SampleRow
from analysis.study import Study, discover

PREFERRED: Final = ("gpu_time", "host_time", "op_time")
"""Times of whole operations, for results whose study is unknown."""


def is_machine(folder: Path) -> bool:
    """Whether it is the folder of one machine."""
    return any(described(study) for study in listed(folder))


def read_results(name: str, folder: Path, runs: str = "", metric: str = "") -> Side:
    """The results in `folder`, a machine or a folder of machines.

    `runs` is a number of newest runs of each variant, a negative number of newest runs to leave
    out, or the start of the runs' times. `metric` replaces the preferred time.
    """
    side = Side(name)
    is_one = is_machine(folder)
    root = folder.parent if is_one else folder
    studies = _studies(root.resolve().parent, side)

    def refuse(path: Path, error: str | Exception) -> None:
        side.notes.append(f"refused: {visible(str(error))}")

    for machine in [folder.name] if is_one else machines(root):
        for inner in listed(root / machine):
            study = studies.get(inner.name)
            found = list(read_runs(inner, study, refuse))
            codes = codes_of(study) if studies else _newest_codes(found)
            for variant in sorted({name for run in found for name in run.about.variants}):
                place = (inner.name, variant) if is_one else (machine, inner.name, variant)
                of_variant = [run for run in found if variant in run.about.variants]
                fresh = [r for r in of_variant if r.about.is_fresh(variant, codes.get(variant))]
                _add(side, place, of_variant, fresh, study, runs, metric)
    return side


def _newest_codes(runs: Sequence[StoredRun]) -> dict[str, str]:
    """The code of the newest of `runs`, which are newest first, by variant."""
    return {
        name: one.source_sha256
        for run in reversed(runs)
        for name, one in run.about.variants.items()
    }


def _studies(checkout: Path, side: Side) -> Mapping[str, Study]:
    """The studies of the checkout that the results lie in; without these, code is not checked."""
    try:
        found = discover(checkout)
    except HotpathError as error:
        side.notes.append(f"studies cannot be read: {visible(str(error))}")
        found = {}
    if not found:
        side.notes.append("no studies beside the results: the code of each newest run counts")
    return found


def _add(
    side: Side,
    place: Row,
    runs: Sequence[StoredRun],
    fresh: Sequence[StoredRun],
    study: Study | None,
    which: str,
    metric: str,
) -> None:
    """Add the rows of a variant, whose `place` names it, to `side`."""
    variant = next((v for v in study.variants if v.name == place[-1]), None) if study else None
    chosen = set(_chosen([run.about.run for run in fresh], which))
    times = (metric,) if metric else study.metrics_for(variant) if study and variant else PREFERRED
    of_case: dict[str, list[tuple[str, SampleRow]]] = {}
    for run in runs:
        for row in run.rows:
            if row.variant == place[-1]:
                of_case.setdefault(row.case, []).append((run.about.run, row))
    for case, rows in sorted(of_case.items()):
        kept = [(run, row) for run, row in rows if run in chosen]
        named = next((name for name in times if _times(kept, name)), "")
        if failed := [row.reason for _, row in kept if row.status == "failed"]:
            side.absent[(*place, case)] = f"failed: {visible(failed[0])}"
        elif named:
            side.runs[(*place, case, named)] = _runs(_times(kept, named))
        elif kept:
            reason = next((row.reason for _, row in kept if row.reason), "no time")
            side.absent[(*place, case)] = visible(reason)
        elif not fresh:
            side.stale[(*place, case)] = "its code has changed since"


def _chosen(runs: Sequence[str], which: str) -> Sequence[str]:
    """The selection `which` from `runs`, newest first: a number of runs, or the start of a time."""
    if which.removeprefix("-").isdecimal() and len(which) < 4:
        count = int(which)
        return runs[:count] if count > 0 else runs[-count:]
    start = re.sub("[-:]", "", which)
    return [run for run in runs if run.replace("-", "").startswith(start)]


def _times(rows: Sequence[tuple[str, SampleRow]], metric: str) -> dict[str, list[float]]:
    """The medians of rounds of a time above 0, by run."""
    found: dict[str, list[float]] = {}
    for run, row in rows:
        if values := [value for value in row.values.get((metric, "s"), ()) if value > 0]:
            found.setdefault(run, []).append(float(np.median(values)))
    return found


def _runs(times: Mapping[str, Sequence[float]]) -> list[Run]:
    """The runs of a row: the medians of their rounds are the samples of a run."""
    found = []
    for run, medians in sorted(times.items()):
        logs = np.log(medians)
        found.append(Run(float(np.exp(np.median(logs))), spread_of(logs), run))
    return found


@contextmanager
def at_revision(revision: str, checkout: Path) -> Iterator[Path]:
    """The files of a revision, in a folder that is removed at the end."""
    command = ["git", "-C", str(checkout), "archive", "--end-of-options", revision]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        raise HotpathError(
            f"expected a path or a revision of {checkout}, got {visible(revision)!r}"
        )
    with TemporaryDirectory(prefix="hotpath-compare-") as folder:
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            archive.extractall(folder, filter="data")
        yield Path(folder).resolve()
