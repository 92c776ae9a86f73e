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
    skipped: defaultdict[str, list[str]] = defaultdict(list)
    folders: list[Path] = []
    for study in studies:
        written = [*(logs / study.name).glob("*.log")]
        written += [logs / "pending.log"] if study.name in pending else []
        log = max(written, key=_changed_s, default=None)
        if log is None or _changed_s(log) < since:
            continue
        place = places[study.name]
        # Runs that were published since; they may have begun before.
        runs = (
            run
            for run in place.runs(study)
            if _changed_s(place.folder / study.name / f"{run.about.run}.json") >= since
        )
        rows = [row for run in runs for row in run.rows]
        if not rows:
            yield f"{study.name}: not measured, see {log}"
            continue
        folders.append(place.folder)
        done = {row.cell for row in rows if row.status == "ok"}
        wrong = {row.cell for row in rows if row.status == "failed"}
        for variant, reason in {
            (row.variant, row.reason) for row in rows if row.status == "skipped"
        }:
            skipped[reason].append(f"{study.name}/{variant}")
        if done or wrong:
            variants = {variant for variant, _ in done}
            line = f"{study.name}: {len(variants)} variants measured in {len(done)} cells"
            yield line + (f", wrong output in {len(wrong)}, see {log}" if wrong else "")
    for reason, names in sorted(skipped.items()):
        of = dict.fromkeys(name.split("/")[0] for name in sorted(names))
        yield f"skipped: {len(names)} variants of {', '.join(of)}: {reason}"
    for folder in dict.fromkeys(folders):
        yield f"results: {folder.relative_to(ROOT) if folder.is_relative_to(ROOT) else folder}"


def _changed_s(path: Path) -> float:
    """The time of the file's last change in seconds; 0 where there is none."""
    return path.stat().st_mtime if path.exists() else 0.0
