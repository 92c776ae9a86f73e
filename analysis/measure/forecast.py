"""How long measuring takes: as this machine's last run did, before the first as budgets say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import fmean, median

from analysis.base.errors import HotpathError
from analysis.measure.needs import Provision
from analysis.measure.plan import Plan, Target
from analysis.results.store.samples import Sample, read_newest_run, read_samples
from analysis.study import Study, Variant

CellKey = tuple[str, str]
"""A variant's name and a case's id."""


@dataclass(frozen=True)
class Pace:
    """Seconds in a round: of each cell, and of everything else, such as drawing inputs."""

    cells: Mapping[CellKey, float]
    overhead: float

    def round_s(self, cells: Mapping[CellKey, float]) -> float:
        """Mean seconds of a round with these cells, each with the share of rounds that measure it.
        One that is not known takes as long as the rest."""
        usual = fmean(self.cells.values()) if self.cells else 0.0
        taken = (share * self.cells.get(cell, usual) for cell, share in cells.items())
        return self.overhead + sum(taken)


@dataclass(frozen=True)
class Forecast:
    """The expected length of a study's run: seconds of one of its rounds, seconds of the studies
    after it, and its place among those that are measured together."""

    round_s: float
    later_s: float = 0.0
    place: int = 1
    places: int = 1


def forecasts(plans: Sequence[Plan], provision: Provision) -> list[Forecast]:
    """The forecast of each of `plans`, which are run in this order."""
    round_s = [round_seconds(plan, provision) for plan in plans]
    whole_s = [plan.grid.rounds * s for plan, s in zip(plans, round_s, strict=True)]
    return [
        Forecast(seconds, sum(whole_s[place:]), place, len(plans))
        for place, seconds in enumerate(round_s, start=1)
    ]


def _last_runs(study: Study, where: Target) -> Iterator[tuple[str, list[Sample]]]:
    """The name of each measured variant, and the samples of its newest run.

    If variants have different newest runs, the samples of all these runs: the duration of a cell
    follows from the start of the next cell, which may belong to any variant.
    """
    paths = where.samples_files(study)
    newest = {name: read_newest_run(path) for name, path in paths.items()}
    runs = {rows[0].run for rows in newest.values() if rows}
    for name, rows in newest.items():
        if rows and len(runs) > 1:
            with suppress(HotpathError):
                rows = [sample for sample in read_samples(paths[name]) if sample.run in runs]
        yield name, rows


def round_seconds(plan: Plan, provision: Provision) -> float:
    """Mean seconds that a round of the plan will take; 0 if none of its variants can run."""
    runnable = [variant for variant in plan.variants if provision.unmet(variant) is None]
    cells = _shares(runnable, plan)
    if not cells:
        return 0.0
    pace = last_pace(plan.study, plan.where) or _budgeted(plan)
    return pace.round_s(cells)


def _shares(variants: Iterable[Variant], plan: Plan) -> dict[CellKey, float]:
    """Share of the plan's rounds that measure each cell of these variants."""
    rounds = plan.grid.rounds
    return {
        (variant.name, case.id): -(-rounds // case.every) / rounds
        for variant in variants
        for case in variant.in_grid(plan.grid.name)
    }


def _budgeted(plan: Plan) -> Pace:
    """The pace if all cells of the study took equally long and filled its budget."""
    study = plan.study
    cells = _shares(study.variants, plan)
    each_s = study.budget_s / plan.grid.rounds / sum(cells.values())
    return Pace(dict.fromkeys(cells, each_s), 0.0)


def last_pace(study: Study, where: Target) -> Pace | None:
    """The pace of each cell in its last run on this machine; None before the first run."""
    starts: dict[str, dict[int, list[tuple[float, CellKey]]]] = {}
    for variant, samples in _last_runs(study, where):
        # A case that no round has tried has a row that starts with the run.
        seen = {(s.run, s.round, s.case, s.started_at) for s in samples if s.started_at != s.run}
        for run, number, case, started_at in seen:
            began = datetime.fromisoformat(started_at).timestamp()
            starts.setdefault(run, {}).setdefault(number, []).append((began, (variant, case)))
    cells: dict[CellKey, float] = {}
    overhead: float | None = None
    for run in sorted(starts, reverse=True):
        rounds = sorted(sorted(cells) for cells in starts[run].values())  # a repeated one came last
        known = _cells_of(rounds)
        cells = known | cells
        overhead = _overhead(rounds, known) if overhead is None else overhead
    return Pace(cells, overhead) if cells and overhead is not None else None


def _cells_of(rounds: Sequence[Sequence[tuple[float, CellKey]]]) -> dict[CellKey, float]:
    """Mean seconds of each cell: until the next one of its round begins."""
    taken: dict[CellKey, list[float]] = {}
    for cells in rounds:
        for (began, cell), (ended, _) in pairwise(cells):
            taken.setdefault(cell, []).append(ended - began)
    return {cell: fmean(seconds) for cell, seconds in taken.items()}


def _overhead(
    rounds: Sequence[Sequence[tuple[float, CellKey]]], known: Mapping[CellKey, float]
) -> float:
    """Seconds between the end of a round's last cell and the next round's first cell."""

    def gaps() -> Iterator[float]:
        for cells, following in pairwise(rounds):
            ended, last = cells[-1]
            yield max(0.0, abs(following[0][0] - ended) - known.get(last, 0.0))

    # Not the mean: a run that was interrupted has one long gap.
    return median(found) if (found := list(gaps())) else 0.0
