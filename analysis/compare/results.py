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

from analysis.base.errors import HotpathError, visible
from analysis.compare.side import Row, Run, Side, spread_of
from analysis.results.store.folders import (
    DESCRIPTION,
    check_machine,
    machines,
    samples_files,
    study_folders,
)
from analysis.results.store.results import VariantResults, load_variant
from analysis.results.store.samples import Sample
from analysis.study import Study, discover
from analysis.study.source import fingerprint

PREFERRED: Final = ("gpu_time", "host_time", "op_time")
"""Times of whole operations, for results whose study is unknown."""


def read_results(name: str, folder: Path, runs: str = "", metric: str = "") -> Side:
    """The results in `folder`, a machine or a folder of machines.

    `runs` is a number of newest runs of each variant, a negative number of newest runs to leave
    out, or the beginning of the start times. `metric` replaces the preferred time.
    """
    side = Side(name)
    is_machine = (folder / DESCRIPTION).exists()
    root = folder.parent if is_machine else folder
    names = [folder.name] if is_machine else machines(folder)
    studies = _studies(root.resolve().parent, side)
    for machine in names:
        try:
            check_machine(root / machine)
        except HotpathError as error:
            side.notes.append(f"refused: {visible(str(error))}")
            continue
        for inner in study_folders(root / machine):
            try:
                variants = [load_variant(path) for path in samples_files(inner)]
            except HotpathError as error:
                side.notes.append(f"refused: {visible(str(error))}")
                continue
            for loaded in variants:
                _add(side, () if is_machine else (machine,), loaded, studies, runs, metric)
    return side


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
    machine: Row,
    loaded: VariantResults,
    studies: Mapping[str, Study],
    runs: str,
    metric: str,
) -> None:
    """Add the rows of a variant to `side`."""
    study = studies.get(loaded.study)
    variant = next((v for v in study.variants if v.name == loaded.variant), None) if study else None
    code = loaded.provenance["source_sha256"]
    if studies:
        code = fingerprint(study, variant) if study and variant else ""
    fresh = loaded.fresh_runs(code)
    chosen = set(_chosen(fresh, runs))
    of_case: dict[str, list[Sample]] = {}
    for sample in loaded.samples:
        of_case.setdefault(sample.case, []).append(sample)
    times = study.metrics_for(variant) if study and variant else PREFERRED
    for case, samples in of_case.items():
        row = (*machine, loaded.study, loaded.variant, case)
        kept = [sample for sample in samples if sample.run in chosen]
        named = _metric(kept, (metric,) if metric else times)
        if failed := [s.reason for s in kept if s.status == "failed"]:
            side.absent[row] = f"failed: {visible(failed[0])}"
        elif named:
            side.runs[(*row, named)] = _runs(kept, named)
        elif kept:
            side.absent[row] = visible(next((s.reason for s in kept if s.reason), "no time"))
        elif not fresh:
            side.stale[row] = "its code has changed since"


def _chosen(runs: Sequence[str], which: str) -> Sequence[str]:
    """The selection `which` from `runs`, newest first: a number of runs, or the start of a name."""
    if which.removeprefix("-").isdecimal() and len(which) < 4:
        count = int(which)
        return runs[:count] if count > 0 else runs[-count:]
    return [run for run in runs if run.startswith(which)]


def _metric(samples: Sequence[Sample], preferred: Sequence[str]) -> str:
    found = {sample.metric for sample in samples if sample.unit == "s" and sample.value}
    return next((name for name in preferred if name in found), "")


def _runs(samples: Sequence[Sample], metric: str) -> list[Run]:
    """The runs of a row: the medians of their rounds are the samples of a run."""
    rounds: dict[str, dict[int, list[float]]] = {}
    for sample in samples:
        if sample.metric == metric and sample.value:
            rounds.setdefault(sample.run, {}).setdefault(sample.round, []).append(sample.value)
    found = []
    for run, by_round in sorted(rounds.items()):
        logs = np.log([float(np.median(values)) for values in by_round.values()])
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
