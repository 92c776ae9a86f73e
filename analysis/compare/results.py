"""Times in results of this project: a folder of machines, one machine, or some of its runs, in the
working tree or at a revision."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
import pandas as pd

from analysis.base.errors import HotpathError, visible
from analysis.compare.side import Row, Run, Side, spread_of
from analysis.results.store.collect import Collected, collect
from analysis.results.store.folders import described, listed
from analysis.study import Study, discover

PREFERRED: Final = ("gpu_time", "host_time", "op_time")
"""Times of whole operations, for results whose study is unknown."""


def is_machine(folder: Path) -> bool:
    """Whether it is the folder of one machine."""
    return any(described(study) for study in listed(folder))


def read_results(name: str, folder: Path, runs: str = "", metric: str = "") -> Side:
    """The results in `folder`, a machine or a folder of machines.

    `runs` is a number of newest runs of each variant, a negative number of newest runs to leave
    out, or the beginning of the runs' names. `metric` replaces the preferred time.
    """
    side = Side(name)
    is_one = is_machine(folder)
    root = folder.parent if is_one else folder
    studies = _studies(root.resolve().parent, side)
    found = collect(root, studies, machine=folder.name if is_one else None)
    side.notes += [f"refused: {reason}" for reason in found.refused.values()]
    samples = found.samples
    if not studies:
        samples = samples.assign(stale=_of_other_code(found))
    for key, rows in samples.groupby(["machine", "study", "variant"]):
        machine, study, variant = map(str, key)
        place = (study, variant) if is_one else (machine, study, variant)
        _add(side, place, rows, studies.get(study), runs, metric)
    return side


def _of_other_code(found: Collected) -> list[bool]:
    """Of each sample, whether it is of other code than the newest run of its variant."""
    codes = {
        (run.machine, run.study, variant): one.source_sha256
        for run in found.runs
        for variant, one in run.variants.items()
    }
    of_run = {
        (run.machine, run.study, variant, run.run): one.source_sha256
        for run in found.runs
        for variant, one in run.variants.items()
    }
    keys = found.samples[["machine", "study", "variant", "run"]].itertuples(index=False, name=None)
    return [of_run[key] != codes[key[:3]] for key in keys]


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
    side: Side, place: Row, samples: pd.DataFrame, study: Study | None, runs: str, metric: str
) -> None:
    """Add the rows of a variant, whose `place` names it, to `side`."""
    variant = next((v for v in study.variants if v.name == place[-1]), None) if study else None
    fresh = samples[~samples["stale"]]
    chosen = _chosen(sorted(set(fresh["run"]), reverse=True), runs)
    times = study.metrics_for(variant) if study and variant else PREFERRED
    for case, of_case in samples.groupby("case"):
        row = (*place, str(case))
        kept = of_case[~of_case["stale"] & of_case["run"].isin(chosen)]
        named = _metric(kept, (metric,) if metric else times)
        if not (failed := kept[kept["status"] == "failed"]).empty:
            side.absent[row] = f"failed: {visible(failed['reason'].iloc[0])}"
        elif named:
            side.runs[(*row, named)] = _runs(kept[kept["metric"] == named])
        elif not kept.empty:
            side.absent[row] = visible(next(filter(None, kept["reason"]), "no time"))
        elif fresh.empty:
            side.stale[row] = "its code has changed since"


def _chosen(runs: Sequence[str], which: str) -> Sequence[str]:
    """The selection `which` from `runs`, newest first: a number of runs, or the start of a name."""
    if which.removeprefix("-").isdecimal() and len(which) < 4:
        count = int(which)
        return runs[:count] if count > 0 else runs[-count:]
    return [run for run in runs if run.startswith(which)]


def _metric(samples: pd.DataFrame, preferred: Sequence[str]) -> str:
    found = set(samples.loc[(samples["unit"] == "s") & (samples["value"] > 0), "metric"])
    return next((name for name in preferred if name in found), "")


def _runs(samples: pd.DataFrame) -> list[Run]:
    """The runs of a row: the medians of their rounds are the samples of a run."""
    times = samples[samples["value"] > 0]
    by_round = np.log(times.groupby(["run", "round"])["value"].median())
    return [
        Run(float(np.exp(logs.median())), spread_of(logs.to_numpy()), str(run))
        for run, logs in by_round.groupby("run")
    ]


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
