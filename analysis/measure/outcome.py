"""Summary of a run of the workflow: measured and skipped variants, and reasons."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from analysis import ROOT
from analysis.measure.places import Place
from analysis.study import Study


def outcome(studies: Iterable[Study], places: Mapping[str, Place], since: float) -> Iterator[str]:
    """A line for each study with runs that were published from `since` on, one for each reason to
    skip something, and one for each folder of results."""
    skipped: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    folders = set()
    for study in studies:
        place = places[study.name]
        files = (place.folder / study.name).glob("*.json")
        new = {file.stem for file in files if file.stat().st_mtime >= since}  # maybe begun before
        runs = place.runs(study) if new else ()
        rows = [row for run in runs if run.about.run in new for row in run.rows]
        folders |= {place.folder} if rows else set()
        for row in rows:
            if row.status == "skipped":
                skipped[row.reason].add((study.name, row.variant))
        measured = {row.cell for row in rows if row.status == "ok"}
        wrong = {row.cell for row in rows if row.status == "failed"}
        if measured or wrong:
            variants = len({variant for variant, _ in measured})
            line = f"{study.name}: {variants} variants measured in {len(measured)} cells"
            yield line + (f", wrong output in {len(wrong)}" if wrong else "")
    for reason, names in sorted(skipped.items()):
        of = ", ".join(sorted({study for study, _ in names}))
        yield f"skipped: {len(names)} variants of {of}: {reason}"
    for folder in sorted(folders):
        yield f"results: {folder.relative_to(ROOT) if folder.is_relative_to(ROOT) else folder}"
