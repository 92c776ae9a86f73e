"""Summary of a run of the workflow: measured and skipped variants, reasons, and logs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path

from analysis import ROOT
from analysis.measure.places import Place
from analysis.study import Study


def outcome(
    studies: Iterable[Study],
    pending: Container[str],
    places: Mapping[str, Place],
    since: float,
    logs: Path,
) -> Iterator[str]:
    """A line for each study that was measured from `since` on, or tried, and one for each reason to
    skip something.

    `logs` is the folder with `pending.log`, of all studies that are named in `pending`, and with a
    log for each variant that was asked for by name, in a folder of its study.
    """
    skipped: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    folders: dict[Path, None] = {}
    for study in studies:
        place = places[study.name]
        written = [*(logs / study.name).glob("*.log")]
        written += [logs / "pending.log"] if study.name in pending else []
        log = max(written, key=_changed_s, default=None)
        if log is None or _changed_s(log) < since:
            continue
        rows = [
            row
            for run in place.runs(study)  # published since, maybe begun before
            if _changed_s(place.folder / study.name / f"{run.about.run}.json") >= since
            for row in run.rows
        ]
        if not rows:
            yield f"{study.name}: not measured, see {log}"
            continue
        folders[place.folder] = None
        for row in rows:
            if row.status == "skipped":
                skipped[row.reason].add((study.name, row.variant))
        measured = {row.cell for row in rows if row.status == "ok"}
        wrong = {row.cell for row in rows if row.status == "failed"}
        if measured or wrong:
            variants = len({variant for variant, _ in measured})
            line = f"{study.name}: {variants} variants measured in {len(measured)} cells"
            yield line + (f", wrong output in {len(wrong)}, see {log}" if wrong else "")
    for reason, names in sorted(skipped.items()):
        of = ", ".join(sorted({study for study, _ in names}))
        yield f"skipped: {len(names)} variants of {of}: {reason}"
    for folder in folders:
        yield f"results: {folder.relative_to(ROOT) if folder.is_relative_to(ROOT) else folder}"


def _changed_s(path: Path) -> float:
    """The time of the file's last change in seconds; 0 where there is none."""
    return path.stat().st_mtime if path.exists() else 0.0
