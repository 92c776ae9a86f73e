"""The journal of a run: what is finished of it, until it is in the results.

<build>/rounds/<machine>/<study>/<grid>-<host>-<digest of the plan>/
    journal.json                  the run's name, the commit and claims of its start, and a record
                                  of each round, which makes it finished
    round-00.csv                  the samples of a round
    round-00.visits.csv           when each visit to a cell of it began
    telemetry.csv                 of all rounds

A crash costs at most the current round. A run whose description is in the results is finished: what
is left of its journal is removed.
"""

from __future__ import annotations

import hashlib
import time
from collections import ChainMap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from analysis import ROOT
from analysis.base import keys
from analysis.base.errors import FieldError, HotpathError
from analysis.base.files import remove, remove_together, write_whole
from analysis.base.keys import UtcTime
from analysis.base.reading import read_bytes, read_json
from analysis.base.records import read_records
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


class RoundRecord(Keys):
    """Record of a finished round: its start, end and seconds, the GPU's energy in joules if
    counted, the host before and after it, new processes of others on the GPU, the seconds of its
    stages, and the checksum of its samples."""

    start: UtcTime
    end: UtcTime
    seconds: float
    energy_j: float | None
    conditions: Look
    after: Look
    newcomers: Listed[Natural]
    stages_s: Stages
    samples_sha256: Digest


class Begun(Keys):
    """A run since it began: its finished rounds by number, and those that are measured again."""

    run: RunName
    commit: Commit | None
    dirty: bool | None
    bounds: Bounds
    rounds: dict[Annotated[str, Field(pattern="^[0-9]+$")], RoundRecord]
    repeated: Listed[Disturbance]


class Journal:
    """The finished rounds of one plan."""

    def __init__(self, plan: Plan) -> None:
        self.folder = plan.journal
        self.study = plan.study.name
        self.rounds = plan.grid.rounds
        self.telemetry_file = self.folder / "telemetry.csv"
        self._plan = plan
        self._file = self.folder / "journal.json"
        self._begun = self._read()

    def _read(self) -> Begun | None:
        """The finished rounds, None without any. A round with a damaged file is removed,
        with a word, so it is measured again."""
        begun = None
        if self._file.exists():
            try:
                begun = keys.read(Begun, read_json(self._file), str(self._file))
            except HotpathError as error:
                self._say_damaged(self._file, error)
        if begun is None or self._is_published(begun.run):
            if self.folder.exists():
                remove_together(self.folder)
            return None
        for number in [int(number) for number in begun.rounds]:
            samples = self.round_file(number)
            try:
                if (got := digest_of(samples)) != begun.rounds[str(number)].samples_sha256:
                    raise FieldError(f"{samples}: checksum", "that of the record", got)
                self._visits(number)
            except HotpathError as error:
                self._say_damaged(samples, f"it is measured again: {error}")
                del begun.rounds[str(number)]
                for file in self.folder.glob(f"{samples.stem}.*"):
                    remove(file)
        return begun if begun.rounds else None

    def _say_damaged(self, path: Path, why: object) -> None:
        print(f"{self.study}: {path} is damaged and removed: {why}", flush=True)

    def _is_published(self, run: str) -> bool:
        return (self._plan.results / f"{run}.json").exists()

    @property
    def run(self) -> str:
        """The run's name; a resumed run keeps it."""
        return self.begin().run

    @property
    def records(self) -> dict[int, RoundRecord]:
        """The record of every finished round, in their order."""
        found = self._begun.rounds if self._begun else {}
        return {int(number): found[number] for number in sorted(found, key=int)}

    @property
    def repeated(self) -> list[Disturbance]:
        """The rounds that were measured again."""
        return self._begun.repeated if self._begun else []

    def begin(self) -> Begun:
        """The run so far. One without a finished round begins now."""
        while self._begun is None:
            run = name_of_run(utc_now(), self._plan.where.host)
            if self._is_published(run):  # within the same second
                time.sleep(0.1)
                continue
            commit, study = commit_of(ROOT), self._plan.study
            bounds = ChainMap(*(study.bounds_of(variant.name) for variant in self._plan.variants))
            self._begun = Begun(
                run=run,
                commit=commit.name,
                dirty=commit.dirty,
                bounds=dict(bounds),
                rounds={},
                repeated=[],
            )
            self._write()
        return self._begun

    def _write(self) -> None:
        write_whole(self._file, self.begin().model_dump_json())

    def round_file(self, number: int) -> Path:
        """The samples of a round."""
        return self.folder / f"round-{number:02}.csv"

    def missing(self) -> list[int]:
        """The numbers of the rounds that are still to be measured."""
        return [n for n in range(self.rounds) if n not in self.records]

    def finish(self, number: int, record: RoundRecord) -> None:
        """Keep a round whose samples are in its file."""
        self.begin().rounds[str(number)] = record
        self._write()

    def repeat(self, number: int, why: Sequence[str]) -> None:
        """Count a round as missing again, and note why."""
        begun = self.begin()
        del begun.rounds[str(number)]
        begun.repeated.append(Disturbance(round=number, why=list(why)))
        self._write()

    def visits(self) -> list[Visit]:
        """The visits to cells of all finished rounds that have a file of them."""
        return [visit for number in self.records for visit in self._visits(number)]

    def _visits(self, number: int) -> list[Visit]:
        path = self.round_file(number).with_suffix(".visits.csv")
        return read_records(path, Visit) if path.exists() else []

    def rows(self) -> list[Row]:
        """The samples of all finished rounds."""
        return [row for number in self.records for row in read_rows(self.round_file(number))]


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
