"""What a run of the workflow has measured, what it has skipped and why, and where to look."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from analysis import ROOT
from analysis.measure.plan import Target
from analysis.store.samples import Sample, read_newest_run
from analysis.study import Study


def outcome(studies: Iterable[Study], where: Target, since: str, logs: Path) -> Iterator[str]:
    """A line for each study that was measured from `since` on, or tried, and one for each reason to
    skip something. `logs` is the folder with a log for each study."""
    skipped: list[tuple[str, str]] = []
    tried = [study for study in studies if _changed(logs / f"{study.name}.log") >= since]
    new = [[s for s in _new_samples(study, where) if s.run >= since] for study in tried]
    for study, samples in zip(tried, new, strict=True):
        done = {(s.variant, s.case) for s in samples if s.status == "ok"}
        wrong = {(s.variant, s.case) for s in samples if s.status == "failed"}
        skipped += {
            (s.reason, f"{study.name}/{s.variant}") for s in samples if s.status == "skipped"
        }
        log = logs / f"{study.name}.log"
        if not samples:
            yield f"{study.name}: not measured, see {log}"
        elif done or wrong:
            variants = {variant for variant, _ in done}
            told = f"{study.name}: {len(variants)} variants measured in {len(done)} cells"
            yield told + (f", wrong output in {len(wrong)}, see {log}" if wrong else "")
    for reason, names in groupby(sorted(skipped), lambda entry: entry[0]):
        of = [name.split("/")[0] for _, name in names]
        yield f"skipped: {len(of)} variants of {', '.join(dict.fromkeys(of))}: {reason}"
    if any(new):
        folder = where.root / where.machine
        yield f"results: {folder.relative_to(ROOT) if folder.is_relative_to(ROOT) else folder}"


def _changed(path: Path) -> str:
    """When the file changed, in UTC; empty where there is none."""
    seconds = path.stat().st_mtime if path.exists() else 0.0
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}" if seconds else ""


def _new_samples(study: Study, where: Target) -> Iterator[Sample]:
    for variant in study.variants:
        path = where.root / where.machine / study.name / f"{variant.name}.csv"
        if path.exists():
            yield from read_newest_run(path)
