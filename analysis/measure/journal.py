"""The journal of a run: what is finished of it, until it is in the results.

<build>/rounds/<machine>/<study>/<grid>-<host>-<digest of the plan>/
    begin.json                    the run's name, and the commit and the claims of its start
    round-00.csv, round-00.json   a round: its samples, and its record, which makes it finished
    round-00.visits.csv           when each visit to a cell of it began
    repeated.json                 rounds that are discarded, and why
    telemetry.csv                 of all rounds

A crash costs at most the current round. A run whose description is in the results is finished: what
is left of its journal is removed.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from analysis import ROOT
from analysis.base import keys
from analysis.base.errors import HotpathError
from analysis.base.files import remove, remove_together, write_whole
from analysis.base.keys import UtcTime
from analysis.base.reading import read_bytes
from analysis.base.records import read_records
from analysis.base.schema import read_json
from analysis.measure.cell import Visit
from analysis.measure.clock import utc_now
from analysis.measure.commit import commit_of
from analysis.measure.needs import Provision
from analysis.measure.plan import Plan, plans
from analysis.results.store.keys import (
    Bounds,
    Commit,
    Digest,
    Disturbance,
    Keys,
    Listed,
    Look,
    Natural,
    RunName,
    Stages,
    name_of_run,
)
from analysis.results.store.samples import Row, read_rows

T = TypeVar("T")


class Begin(Keys):
    """The start of a run."""

    run: RunName
    commit: Commit | None
    dirty: bool | None
    bounds: Bounds


class RoundRecord(Keys):
    """Record of a finished round: its run, its start, end and seconds, the GPU's energy in joules
    if counted, the host before and after it, new processes of others on the GPU, the seconds of
    its stages, and the checksum of its samples."""

    run: RunName
    start: UtcTime
    end: UtcTime
    seconds: float
    energy_j: float | None
    conditions: Look
    after: Look
    newcomers: Listed[Natural]
    stages_s: Stages
    samples_sha256: Digest


class Journal:
    """The finished rounds of one plan."""

    def __init__(self, plan: Plan) -> None:
        self.folder = plan.journal
        self.study = plan.study.name
        self.rounds = plan.grid.rounds
        self._plan = plan
        begin_file = self.folder / "begin.json"
        begin = self._readable(begin_file, Begin, None)
        if self.folder.exists() and (begin is None or self._is_published(begin)):
            remove_together(self.folder)
            begin = None
        self._begin = begin
        if not self.records:
            self._begin = None

    def _is_published(self, begin: Begin) -> bool:
        return (self._plan.results / f"{begin.run}.json").exists()

    @property
    def run(self) -> str:
        """The run's name; a resumed run keeps it."""
        return self.begin().run

    def begin(self) -> Begin:
        """The start of the run. A run without a finished round begins now."""
        if self._begin is None:
            self._begin = self._begin_now()
            while self._is_published(self._begin):  # by a run of the same second
                time.sleep(0.1)
                self._begin = self._begin_now()
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(self.folder / "begin.json", self._begin.model_dump_json())
        return self._begin

    def _begin_now(self) -> Begin:
        commit = commit_of(ROOT)
        return Begin(
            run=name_of_run(utc_now(), self._plan.where.host),
            commit=commit.name,
            dirty=commit.dirty,
            bounds={
                claim: digests
                for variant in self._plan.variants
                for claim, digests in self._plan.study.bounds_of(variant.name).items()
            },
        )

    def round_file(self, number: int) -> Path:
        """The samples of a round."""
        return self.folder / f"round-{number:02}.csv"

    def visits_file(self, number: int) -> Path:
        """The file of when each visit to a cell of a round began."""
        return self.round_file(number).with_suffix(".visits.csv")

    @property
    def telemetry_file(self) -> Path:
        return self.folder / "telemetry.csv"

    @property
    def _repeats_file(self) -> Path:
        return self.folder / "repeated.json"

    @cached_property
    def records(self) -> dict[int, RoundRecord]:
        """The record of every finished round, by its number.

        A round with a damaged file is removed, with a word, so it is measured again.
        """
        found: dict[int, RoundRecord] = {}
        for number in range(self.rounds):
            path = self.round_file(number).with_suffix(".json")
            record = self._readable(path, RoundRecord, None)
            if record is None:
                continue
            try:
                if digest_of(self.round_file(number)) != record.samples_sha256:
                    raise HotpathError("the samples are not those of the record")
                if self._begin is None or record.run != self._begin.run:
                    raise HotpathError(f"of the run {record.run}, not of this one")
                self._visits(number)
                found[number] = record
            except HotpathError as error:
                self._drop(path, f"round {number + 1} is measured again: {error}")
                for file in self.folder.glob(f"{path.stem}.*"):
                    remove(file)
        return found

    def _drop(self, path: Path, why: str) -> None:
        """Remove a damaged file of this journal, with a word."""
        print(f"{self.study}: {path} is damaged and removed: {why}", flush=True)
        remove(path)

    @cached_property
    def repeated(self) -> list[Disturbance]:
        """The rounds that were measured again."""
        return self._readable(self._repeats_file, list[Disturbance], []) or []

    def _readable(self, path: Path, kind: type[T], otherwise: T | None) -> T | None:
        """The content of a file, or `otherwise` if there is none; a damaged one is removed."""
        if not path.exists():
            return otherwise
        try:
            return keys.read(kind, read_json(path), str(path))
        except HotpathError as error:
            self._drop(path, str(error))
            return otherwise

    def missing(self) -> list[int]:
        """The numbers of the rounds that are still to be measured."""
        return [n for n in range(self.rounds) if n not in self.records]

    def finish(self, number: int, record: RoundRecord) -> None:
        """Keep a round whose samples are in its file."""
        write_whole(self.round_file(number).with_suffix(".json"), record.model_dump_json())
        self.records[number] = record

    def repeat(self, number: int, why: Sequence[str]) -> None:
        """Count a round as missing again, and note why. A crash in between loses the note."""
        del self.records[number]
        remove(self.round_file(number).with_suffix(".json"))
        self.repeated.append(Disturbance(round=number, why=list(why)))
        write_whole(self._repeats_file, json.dumps([one.model_dump() for one in self.repeated]))

    def visits(self) -> list[Visit]:
        """The visits to cells of all finished rounds that have a file of them."""
        return [visit for number in sorted(self.records) for visit in self._visits(number)]

    def _visits(self, number: int) -> list[Visit]:
        path = self.visits_file(number)
        return read_records(path, Visit) if path.exists() else []

    def rows(self) -> list[Row]:
        """The samples of all finished rounds."""
        return [
            row for number in sorted(self.records) for row in read_rows(self.round_file(number))
        ]


def digest_of(path: Path) -> str:
    """SHA-256 of a file in hex."""
    return hashlib.sha256(read_bytes(path)).hexdigest()


def discard_outdated(plan: Plan, provision: Provision, runs: int = 1) -> Iterator[str]:
    """Remove journals of the study, on this grid and host, that no command can go on with: the code
    or the settings have changed since. Yield a word on each."""
    begins = f"{plan.grid.name}-{plan.where.host}-"
    others = {path for path in plan.journals.glob(f"{begins}*") if path != plan.journal}
    if others:
        others -= {p.journal for p in plans(plan.study, plan.grid, plan.where, provision, runs)}
    for journal in sorted(others):
        yield f"{plan.study.name}: rounds of an interrupted run are dropped: its code has changed"
        remove_together(journal)
    for gone in plan.journals.glob(f".{begins}*"):
        remove(gone)
