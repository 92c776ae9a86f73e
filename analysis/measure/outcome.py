"""Summary of a run of the workflow: measured and skipped variants, reasons, and logs."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from itertools import groupby
from pathlib import Path

from analysis import ROOT
from analysis.measure.clock import changed_at
from analysis.measure.plan import Target
from analysis.results.store.samples import Row
from analysis.study import Study


def outcome(
    studies: Iterable[Study],
    pending: Container[str],
    where: Callable[[Study], Target],
    since: str,
    logs: Path,
) -> Iterator[str]:
    """A line for each study that was measured from `since` on, or tried, and one for each reason to
    skip something.

    `where` gives the target of a study. `logs` is the folder with `pending.log`, of all studies
    that are named in `pending`, and with a log for each variant that was asked for by name, in a
    folder of its study.
    """
    skipped: list[tuple[str, str]] = []
    newest = [(study, _newest_log(study, pending, logs)) for study in studies]
    tried = [(study, log) for study, log in newest if changed_at(log) >= since]
    new = [_rows_since(since, study, where(study)) for study, _ in tried]
    for (study, log), rows in zip(tried, new, strict=True):
        done = {row.cell for row in rows if row.status == "ok"}
        wrong = {row.cell for row in rows if row.status == "failed"}
        skipped += {
            (row.reason, f"{study.name}/{row.variant}") for row in rows if row.status == "skipped"
        }
        if not rows:
            yield f"{study.name}: not measured, see {log}"
        elif done or wrong:
            variants = {variant for variant, _ in done}
            line = f"{study.name}: {len(variants)} variants measured in {len(done)} cells"
            yield line + (f", wrong output in {len(wrong)}, see {log}" if wrong else "")
    for reason, names in groupby(sorted(skipped), lambda entry: entry[0]):
        of = [name.split("/")[0] for _, name in names]
        yield f"skipped: {len(of)} variants of {', '.join(dict.fromkeys(of))}: {reason}"
    folders = [where(study).folder for (study, _), rows in zip(tried, new, strict=True) if rows]
    for folder in dict.fromkeys(folders):
        yield f"results: {folder.relative_to(ROOT) if folder.is_relative_to(ROOT) else folder}"


def _newest_log(study: Study, pending: Container[str], logs: Path) -> Path:
    of_pending = [logs / "pending.log"] if study.name in pending else []
    of_variants = (logs / study.name).glob("*.log")
    return max([*of_pending, *of_variants], key=changed_at, default=logs / study.name)


def _rows_since(since: str, study: Study, where: Target) -> list[Row]:
    """The samples of the runs that were published since; they may have begun before."""
    folder = where.folder / study.name
    new = (r for r in where.runs(study) if changed_at(folder / f"{r.about.run}.json") >= since)
    return [row for run in new for row in run.rows]
