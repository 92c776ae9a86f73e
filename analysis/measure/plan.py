"""Plans of measurements on this machine: variants with cases that lack a fresh sample."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from analysis import BUILD, ROOT
from analysis.base.errors import HotpathError
from analysis.base.gpu import Gpu
from analysis.measure.places import Place
from analysis.results.store import METHOD_VERSION
from analysis.results.store.runs import codes_of, read_captures
from analysis.study import GRIDS, Study, Variant
from analysis.study.config import Grid
from analysis.study.source import fingerprint


class StudyError(HotpathError):
    """A failure of one study, which leaves the machine fit to measure the others."""


def wrong_output(study: str, variants: Iterable[str]) -> StudyError:
    """The error of a study with variants of wrong output."""
    names = ", ".join(variants)
    return StudyError(f"{study}: wrong output of {names}; marked failed in the results")


@dataclass(frozen=True)
class Plan:
    """One run of one study; `asked` names the variants that were asked for, none for all."""

    study: Study
    variants: tuple[Variant, ...]
    grid: Grid
    place: Place
    asked: tuple[str, ...] = ()

    @property
    def runnable(self) -> list[Variant]:
        """The variants whose needs are met here."""
        return [variant for variant in self.variants if self.place.unmet(variant) is None]

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The GPUs that the variants use."""
        return self.place.in_use(self.runnable)

    @property
    def digest(self) -> str:
        """Changes with anything that invalidates the rounds of an interrupted run."""
        variants = {
            variant.name: [
                fingerprint(self.study, variant),
                *(
                    [case.id, case.metrics, case.samples, case.visits, case.every, case.warm]
                    for case in variant.in_grid(self.grid.name)
                ),
            ]
            for variant in self.variants
        }
        parts = [METHOD_VERSION, asdict(self.grid), variants]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def results(self) -> Path:
        """Folder of the study's results on this machine."""
        return self.place.folder / self.study.name

    @property
    def journal(self) -> Path:
        """Folder of the finished rounds, until the run is published."""
        rounds = BUILD / "rounds" / self.place.machine / self.study.name
        return rounds / f"{self.grid.name}-{self.place.host}"

    @property
    def budget_s(self) -> float:
        """Expected seconds of all rounds: the study's budget covers all of its cells."""
        rounds = self.grid.rounds

        def cells(variants: Iterable[Variant]) -> int:
            cases = (case for variant in variants for case in variant.in_grid(self.grid.name))
            return sum(-(-rounds // case.every) for case in cases)

        return self.study.budget_s * cells(self.runnable) / max(cells(self.study.variants), 1)


def plan_pending(study: Study, grid: Grid, place: Place, runs: int = 1) -> Plan | None:
    """The plan of the variants that lack fresh samples of `runs` runs, with the companions of those
    that can run here. None if none lacks any."""
    lacking = pending(study, place, grid.name, runs)
    if not lacking:
        return None
    names = {variant.name for variant in lacking}
    for variant in lacking:
        if place.unmet(variant) is None:
            names |= {companion.name for companion in study.companions(variant.name)}
    is_all = len(lacking) == len([v for v in study.variants if v.in_grid(grid.name)])
    asked = () if is_all else tuple(variant.name for variant in lacking)
    return Plan(study, tuple(v for v in study.variants if v.name in names), grid, place, asked)


def plan_again(study: Study, grid: Grid, place: Place, variant: str) -> Plan:
    """The plan of a variant again, together with its baselines."""
    return Plan(study, tuple(study.companions(variant)), grid, place, (variant,))


def pending(study: Study, place: Place, grid: str, runs: int = 1) -> list[Variant]:
    """Variants with a case in `grid` that fewer than `runs` fresh runs have measured, or skipped
    for a reason that is still valid."""
    lacking = {(v.name, case.id): runs for v in study.variants for case in v.in_grid(grid)}
    codes = codes_of(study)
    unmet = {variant.name: place.unmet(variant) for variant in study.variants}
    for run in place.runs(study):
        about = run.about
        if not lacking:
            break
        if GRIDS.index(about.grid) < GRIDS.index(grid):
            continue
        # A need that was not met then may be met now. What a workload skipped stays skipped.
        fresh = about.fresh(codes)
        done = {
            cell
            for cell, is_measured in run.cells().items()
            if cell[0] in fresh and (is_measured or about.variants[cell[0]].unmet == unmet[cell[0]])
        }
        for cell in done & lacking.keys():
            lacking[cell] -= 1 if about.rounds else runs  # one run that skips everything is enough
            if lacking[cell] <= 0:
                del lacking[cell]
    names = {variant for variant, _ in lacking}
    return [variant for variant in study.variants if variant.name in names]


def wrong_variants(study: Study, place: Place) -> list[str]:
    """Variants that had a wrong output when this host last ran their present code."""
    codes = codes_of(study)
    newest: dict[tuple[str, str], bool] = {}
    for run in place.runs(study):
        fresh = run.about.fresh(codes) if run.about.host.id == place.host else ()
        measured = [row for row in run.rows if row.variant in fresh and row.status != "skipped"]
        failed = {row.cell for row in measured if row.status == "failed"}
        newest = {row.cell: row.cell in failed for row in measured} | newest
    return sorted({variant for (variant, _), is_wrong in newest.items() if is_wrong})


def lacks_captures(study: Study, place: Place, grid: str, kinds: Sequence[str]) -> bool:
    """Whether a variant that can be profiled here lacks a capture of its current source."""
    if not place.gpus or grid == "smoke":
        return False
    codes = codes_of(study)
    taken = {
        (capture.about.kind, name)
        for capture in read_captures(place.folder / study.name)
        for name in capture.about.fresh(codes)
    }
    return any(
        kind in variant.captures and (kind, variant.name) not in taken
        for variant in study.variants
        if variant.on_gpu
        and study.captured_case(variant) in {case.id for case in variant.in_grid(grid)}
        and place.unmet(variant) is None
        for kind in kinds
    )


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
