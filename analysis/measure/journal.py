"""The journal of a run: what is finished of it, until all of it is in the results.

<build>/rounds/<machine>/<study>/<grid>-<digest of the plan>/
    round-00.csv, round-00.json   a round: its samples, and its record, which makes it finished
    round-00.visits.csv           when each visit to a cell of it began
    repeated.json                 rounds that are discarded, and why
    bounds.json                   the bounds of claims when the run began, by variant
    telemetry.csv                 of all rounds
    publishing/                   what the finished run changes in the results, whole

A crash at any moment costs the round that was running. Once `publishing` is there, the next start
completes it, whichever study that measures.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from analysis.base.errors import HotpathError
from analysis.base.files import remove_together, write_all, write_together, write_whole
from analysis.base.records import read_records
from analysis.base.schema import read_json
from analysis.measure.cell import Visit
from analysis.measure.clock import utc_now
from analysis.measure.needs import Provision
from analysis.measure.plan import (
    PUBLISHING,
    RESULTS,
    Plan,
    Target,
    half_published,
    leftovers,
    plans,
)
from analysis.results.store.samples import Sample, checksum, read_round
from analysis.study import Study
from analysis.study.claims.bounds import Bounds

_OUTCOME = "outcome.json"


@dataclass(frozen=True)
class RoundRecord:
    """Of a finished round: its run, when it ran and for how many seconds, the GPU's energy
    meanwhile, in joules where it is counted, the host before and after it, the processes of others
    that came to the GPU, and the checksum of its samples."""

    run: str
    start: str
    end: str
    seconds: float
    energy_j: float | None
    conditions: Mapping[str, float | None]
    after: Mapping[str, float | None]
    newcomers: Sequence[int]
    samples_sha256: str


class Journal:
    """The finished rounds of one plan."""

    def __init__(self, plan: Plan) -> None:
        self.folder = plan.journal
        self.study = plan.study.name
        self._bounds_now = {v.name: plan.study.bounds_of(v.name) for v in plan.variants}
        self.rounds = plan.grid.rounds

    def round_file(self, number: int) -> Path:
        """The samples of a round."""
        return self.folder / f"round-{number:02}.csv"

    def visits_file(self, number: int) -> Path:
        """When each visit to a cell of a round began."""
        return self.round_file(number).with_suffix(".visits.csv")

    def _record_file(self, number: int) -> Path:
        return self.round_file(number).with_suffix(".json")

    @property
    def _repeats_file(self) -> Path:
        return self.folder / "repeated.json"

    @property
    def telemetry_file(self) -> Path:
        return self.folder / "telemetry.csv"

    @cached_property
    def run(self) -> str:
        """UTC start of the run; a resumed run keeps it."""
        return next((record.run for record in self.records.values()), utc_now("seconds"))

    @cached_property
    def records(self) -> dict[int, RoundRecord]:
        """The record of every finished round, by its number.

        Files of a round that are not whole are left out, with a word, so it is measured again.
        HotpathError names the list of discarded rounds where that is damaged.
        """
        found: dict[int, RoundRecord] = {}
        discarded = {entry["start"] for entry in self.repeated}
        for number in range(self.rounds):
            if not self._record_file(number).exists():
                continue
            try:
                record = RoundRecord(**json.loads(self._record_file(number).read_text()))
                if record.start in discarded:
                    continue
                if checksum(self.round_file(number)) != record.samples_sha256:
                    raise ValueError("the samples are not those of the record")
                if any(record.run != other.run for other in found.values()):
                    raise ValueError(f"of the run {record.run}, not of that of the others")
                found[number] = record
            except (HotpathError, OSError, ValueError, TypeError) as error:
                print(
                    f"{self.study}: round {number + 1} is measured again: "
                    f"{self._record_file(number)} or .csv is damaged: {error}",
                    flush=True,
                )
        return found

    @cached_property
    def repeated(self) -> list[dict[str, Any]]:
        """The rounds that are measured again: `round`, `why`, and the `start` of the first try."""
        path = self._repeats_file
        entries: list[dict[str, Any]] = read_json(path) if path.exists() else []
        return entries

    @property
    def _bounds_file(self) -> Path:
        return self.folder / "bounds.json"

    def bounds(self) -> Mapping[str, Bounds]:
        """The bounds that each variant's provenance names: those of when the run began, even if it
        was resumed with other claims. HotpathError where the file of them is damaged."""
        if not self._bounds_file.exists():
            return {}
        known: Mapping[str, Bounds] = read_json(self._bounds_file)
        return known

    def begin(self) -> None:
        """Make the folder; a run that has no round yet begins with the claims of now."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.records:
            write_whole(self._bounds_file, json.dumps(self._bounds_now))

    def missing(self) -> list[int]:
        """The numbers of the rounds that are still to be measured."""
        return [n for n in range(self.rounds) if n not in self.records]

    def finish(self, number: int, record: RoundRecord) -> None:
        """Keep a round whose samples are in its file."""
        write_whole(self._record_file(number), json.dumps(asdict(record)))
        self.records[number] = record

    def repeat(self, number: int, why: Sequence[str]) -> None:
        """Count a round as missing again; the note that says why is what discards it."""
        discarded = self.records.pop(number)
        self.repeated.append({"round": number, "why": why, "start": discarded.start})
        write_whole(self._repeats_file, json.dumps(self.repeated))

    def visits(self) -> list[Visit]:
        """The visits to cells of all finished rounds that have a file of them."""
        files = [self.visits_file(number) for number in sorted(self.records)]
        return [visit for file in files if file.exists() for visit in read_records(file, Visit)]

    def samples(self) -> list[Sample]:
        """The samples of all finished rounds."""
        return [s for number in sorted(self.records) for s in read_round(self.round_file(number))]

    def stage(self, texts: Mapping[str, str], messages: Iterable[str], error: str) -> None:
        """Make ready what the run changes in the results: texts by path below their folder.

        `messages` are printed when the texts are published; `error` ends the run, unless empty.
        """
        outcome = json.dumps({"messages": list(messages), "error": error})
        files = {f"{RESULTS}/{name}": text for name, text in texts.items()}
        self.begin()
        write_together(self.folder / PUBLISHING, {_OUTCOME: outcome, **files})


def complete(publishing: Path, where: Target) -> Iterator[str]:
    """Put staged files into the results, remove their journal and yield its messages.

    It may be stopped and begun again at any point. HotpathError at the end, if an output was wrong:
    all is kept, but nothing that runs this may end as if all were well.
    """
    outcome = json.loads((publishing / _OUTCOME).read_text())
    staged = publishing / RESULTS
    files = [path for path in sorted(staged.rglob("*")) if path.is_file()]
    write_all({where.root / path.relative_to(staged): path.read_text() for path in files})
    remove_together(publishing.parent)
    yield from outcome["messages"]
    if outcome["error"]:
        raise HotpathError(outcome["error"])


def settle(study: Study, where: Target, grid: str) -> Iterator[str]:
    """Complete what was half published on this machine, and remove what was half removed."""
    for publishing in half_published(where, grid):
        yield f"{publishing.parents[1].name}: publishing what an earlier run has measured"
        yield from complete(publishing, where)
    for hidden in leftovers(study, where, grid):
        shutil.rmtree(hidden)


def discard_outdated(plan: Plan, provision: Provision) -> Iterator[str]:
    """Remove journals of the study, on this grid, that no command can go on with: the code or the
    settings have changed since. Yield a word on each."""
    others = [path for path in plan.journal.parent.glob(f"{plan.grid.name}-*") if path.is_dir()]
    if set(others) <= {plan.journal}:
        return
    possible = {p.journal for p in plans(plan.study, plan.grid, plan.where, provision)}
    for journal in sorted(set(others) - possible - {plan.journal}):
        yield f"{plan.study.name}: rounds of an interrupted run are dropped: its code has changed"
        remove_together(journal)
