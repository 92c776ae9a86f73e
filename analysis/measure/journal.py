"""The journal of a run: what is finished of it, until all of it is in the results.

<build>/rounds/<machine>/<study>/<grid>-<digest of the plan>/
    round-00.csv, round-00.json   a round: its samples, and its record, which makes it finished
    round-00.visits.csv           when each visit to a cell of it began
    repeated.json                 rounds that are discarded, and why
    bounds.json                   the bounds of claims when the run began, by variant
    telemetry.csv                 of all rounds
    publishing/                   what the finished run changes in the results, whole

A crash costs at most the current round. Once `publishing` exists, the next start completes it,
whichever study it measures.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from analysis.base import keys
from analysis.base.errors import HotpathError
from analysis.base.files import remove, remove_together, write_all, write_together, write_whole
from analysis.base.keys import UtcTime
from analysis.base.reading import read_text
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
from analysis.results.store.keys import (
    Bounds,
    Digest,
    Disturbance,
    Keys,
    Listed,
    Look,
    Natural,
    Stages,
)
from analysis.results.store.samples import Sample, checksum, read_round, text_checksum
from analysis.study import Study

T = TypeVar("T")

_OUTCOME = "outcome.json"


class RoundRecord(Keys):
    """Record of a finished round: its run, its start, end and seconds, the GPU's energy in joules
    if counted, the host before and after it, new processes of others on the GPU, the seconds of
    its stages, and the checksum of its samples."""

    run: UtcTime
    start: UtcTime
    end: UtcTime
    seconds: float
    energy_j: float | None
    conditions: Look
    after: Look
    newcomers: Listed[Natural]
    stages_s: Stages
    samples_sha256: Digest


class Repeat(Disturbance):
    """A round that is measured again; `start` is the start of its first try."""

    start: UtcTime


class Outcome(Keys):
    """Outcome of a finished run: its messages, its error if any, and the checksums of the files to
    publish, by their paths below the folder of results."""

    messages: list[str]
    error: str
    files: dict[str, Digest]


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
        """The file of when each visit to a cell of a round began."""
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

        A round with a damaged file is removed, with a word, so it is measured again.
        """
        found: dict[int, RoundRecord] = {}
        discarded = {entry["start"] for entry in self.repeated}
        for number in range(self.rounds):
            path = self._record_file(number)
            if not path.exists():
                continue
            try:
                record = _read(path, RoundRecord)
                if record.start in discarded:
                    continue
                if checksum(self.round_file(number)) != record.samples_sha256:
                    raise HotpathError("the samples are not those of the record")
                if any(record.run != other.run for other in found.values()):
                    raise HotpathError(f"of the run {record.run}, not of that of the others")
                self._visits(number)
                found[number] = record
            except HotpathError as error:
                self._drop(path, f"round {number + 1} is measured again: {error}")
                for file in self.folder.glob(f"{path.stem}.*"):
                    remove(file)
        for path in self._files():
            if path.is_dir():
                self._drop(path, "expected a file, got a folder")
        return found

    def _files(self) -> Iterator[Path]:
        """Names of the journal's files. Beside them are folders with the raw output of NVBench."""
        yield from (self._repeats_file, self._bounds_file, self.telemetry_file)
        for number in range(self.rounds):
            yield from (self.round_file(number), self.visits_file(number))
            yield self._record_file(number)

    def _drop(self, path: Path, why: str) -> None:
        """Remove a damaged file of this journal, with a word."""
        print(f"{self.study}: {path} is damaged and removed: {why}", flush=True)
        remove(path)

    @cached_property
    def repeated(self) -> list[dict[str, Any]]:
        """The rounds that are measured again: `round`, `why`, and the `start` of the first try."""
        return [
            entry.model_dump() for entry in self._readable(self._repeats_file, list[Repeat], [])
        ]

    def _readable(self, path: Path, kind: type[T], otherwise: T) -> T:
        """The content of a file, or `otherwise` if there is none; a damaged one is removed."""
        if not path.exists():
            return otherwise
        try:
            return _read(path, kind)
        except HotpathError as error:
            self._drop(path, str(error))
            return otherwise

    @property
    def _bounds_file(self) -> Path:
        return self.folder / "bounds.json"

    def bounds(self) -> Mapping[str, Bounds]:
        """The bounds that each variant's provenance names: those of when the run began, even if it
        was resumed with other claims; none if their file is damaged."""
        return self._readable(self._bounds_file, dict[str, Bounds], {})

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
        write_whole(self._record_file(number), record.model_dump_json())
        self.records[number] = record

    def repeat(self, number: int, why: Sequence[str]) -> None:
        """Count a round as missing again. The note that says why is what discards it; its record
        goes, too, in case that the note is damaged later."""
        discarded = self.records.pop(number)
        self.repeated.append({"round": number, "why": why, "start": discarded.start})
        write_whole(self._repeats_file, json.dumps(self.repeated))
        remove(self._record_file(number))

    def visits(self) -> list[Visit]:
        """The visits to cells of all finished rounds that have a file of them."""
        return [visit for number in sorted(self.records) for visit in self._visits(number)]

    def _visits(self, number: int) -> list[Visit]:
        path = self.visits_file(number)
        return read_records(path, Visit) if path.exists() else []

    def samples(self) -> list[Sample]:
        """The samples of all finished rounds."""
        return [s for number in sorted(self.records) for s in read_round(self.round_file(number))]

    def stage(self, texts: Mapping[str, str], messages: Iterable[str], error: str) -> None:
        """Make ready what the run changes in the results: texts by path below their folder.

        `messages` are printed when the texts are published; `error` ends the run, unless empty.
        """
        checksums = {name: text_checksum(text) for name, text in texts.items()}
        outcome = Outcome(messages=list(messages), error=error, files=checksums).model_dump_json()
        files = {f"{RESULTS}/{name}": text for name, text in texts.items()}
        self.begin()
        write_together(self.folder / PUBLISHING, {_OUTCOME: outcome, **files})


def _read(path: Path, kind: type[T]) -> T:
    """The content of a JSON file of these keys; HotpathError names the file and the key."""
    return keys.read(kind, read_json(path), str(path))


def _staged(publishing: Path) -> tuple[dict[str, str], Outcome]:
    """Staged texts by path below the results, and the outcome; HotpathError if one is damaged."""
    outcome = _read(publishing / _OUTCOME, Outcome)
    texts = {}
    for name, expected in outcome.files.items():
        texts[name] = read_text(path := publishing / RESULTS / name)
        if text_checksum(texts[name]) != expected:
            raise HotpathError(f"{path}: checksum differs from the one in {_OUTCOME}")
    return texts, outcome


def complete(publishing: Path, where: Target) -> Iterator[str]:
    """Put staged files into the results, remove their journal and yield its messages.

    It can be stopped and restarted at any point. HotpathError if a staged file is damaged. If an
    output was wrong, HotpathError at the end, after all results are stored, so that no caller
    succeeds.
    """
    texts, outcome = _staged(publishing)
    write_all({where.root / name: text for name, text in texts.items()})
    remove_together(publishing.parent)
    yield from outcome.messages
    if outcome.error:
        raise HotpathError(outcome.error)


def settle(study: Study, where: Target, grid: str) -> Iterator[str]:
    """Complete what was half published on this machine, and remove what was half removed."""
    for publishing in half_published(where, grid):
        name = publishing.parents[1].name
        try:
            _staged(publishing)
        except HotpathError as error:
            yield f"{name}: {error}: publishing starts again from the finished rounds"
            remove(publishing)
            continue
        yield f"{name}: publishing what an earlier run has measured"
        yield from complete(publishing, where)
    for hidden in leftovers(study, where, grid):
        remove(hidden)


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
