"""The journal of a run: what is finished of it, until it is in the results.

<build>/rounds/<machine>/<study>/<grid>-<host>/
    journal.json                  the run's name, the commit and claims of its start, and a record
                                  of each round, which makes it finished
    round-00.csv                  the samples of a round
    telemetry.csv                 of all rounds

A crash costs at most the current round. The journal of a run that is in the results, or of another
plan than today's command has, is of no use and removed.
"""

from __future__ import annotations

import hashlib
import time
from collections import ChainMap
from pathlib import Path

from pydantic import Field

from analysis import ROOT
from analysis.base import keys
from analysis.base.errors import FieldError, HotpathError
from analysis.base.files import remove, write_whole
from analysis.base.keys import UtcTime
from analysis.base.reading import read_bytes, read_json
from analysis.measure.machine import commit_of, utc_now
from analysis.measure.plan import Plan
from analysis.measure.round import Visit
from analysis.results.store.keys import (
    Bounds,
    Digest,
    Disturbance,
    Few,
    Keys,
    Look,
    Natural,
    RunName,
    Stages,
    Token,
    name_of_run,
)
from analysis.results.store.samples import Row, read_rows


class RoundRecord(Keys):
    """A finished round: number, start, end and seconds, the GPU's energy in joules if counted, the
    host before and after it, new processes of others on the GPU, the checksum of its samples, its
    visits to cells in their order, and the seconds of its stages."""

    round: Few
    start: UtcTime
    end: UtcTime
    seconds: float
    energy_j: float | None
    before: Look
    after: Look
    newcomers: list[Natural]
    samples_sha256: Digest
    visits: list[Visit]
    stages_s: Stages


class Begun(Keys):
    """A run since it began: the digest of its plan, what run files keep of its start, its finished
    rounds, and those that are measured again."""

    plan: Digest
    run: RunName
    commit: Token | None
    dirty: bool | None
    bounds: Bounds
    rounds: list[RoundRecord] = Field(default_factory=list)
    repeated: list[Disturbance] = Field(default_factory=list)


class Journal:
    """The finished rounds of a plan. A run without any begins now; a resumed one keeps its name."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.folder = plan.journal
        self.telemetry_file = self.folder / "telemetry.csv"
        self._file = self.folder / "journal.json"
        self.begun = self._resumed() or self._begin()

    def _resumed(self) -> Begun | None:
        """The run with finished rounds that this plan can go on with. Any other is removed; a round
        with damaged samples is measured again."""
        try:
            begun = keys.read(Begun, read_json(self._file), str(self._file))
            if begun.plan != self.plan.digest:
                raise HotpathError("its code or settings have changed")
            begun.rounds = [record for record in begun.rounds if self._is_whole(record)]
            if begun.rounds and not self._is_published(begun.run):
                return begun
        except HotpathError as error:
            if self._file.exists():
                name = self.plan.study.name
                print(f"{name}: rounds of an interrupted run are dropped: {error}", flush=True)
        if self.folder.exists():
            remove(self.folder)
        return None

    def _is_whole(self, record: RoundRecord) -> bool:
        """Whether a round has the samples of its record; if not, a line says so."""
        samples = self.round_file(record.round)
        try:
            if (got := digest_of(samples)) != record.samples_sha256:
                raise FieldError(f"{samples}: checksum", "that of the record", got)
        except HotpathError as error:
            study = self.plan.study.name
            print(f"{study}: a damaged round is measured again: {error}", flush=True)
            return False
        return True

    def _begin(self) -> Begun:
        while self._is_published(run := name_of_run(utc_now(), self.plan.place.host)):
            time.sleep(0.1)  # two runs within a second
        code, plan = commit_of(ROOT), self.plan
        bounds = dict(ChainMap(*(plan.study.bounds_of(variant.name) for variant in plan.variants)))
        return Begun(plan=plan.digest, run=run, commit=code.name, dirty=code.dirty, bounds=bounds)

    def _is_published(self, run: str) -> bool:
        return (self.plan.results / f"{run}.json").exists()

    @property
    def run(self) -> str:
        """The run's name."""
        return self.begun.run

    @property
    def records(self) -> list[RoundRecord]:
        """The finished rounds, in the order of their numbers."""
        return sorted(self.begun.rounds, key=lambda record: record.round)

    def round_file(self, number: int) -> Path:
        """The samples of a round."""
        return self.folder / f"round-{number:02}.csv"

    def missing(self) -> list[int]:
        """The numbers of the rounds that are still to be measured."""
        finished = {record.round for record in self.begun.rounds}
        return [number for number in range(self.plan.grid.rounds) if number not in finished]

    def clear(self, number: int) -> None:
        """Remove all files of a round that is to be measured."""
        for file in self.folder.glob(f"{self.round_file(number).stem}.*"):
            remove(file)

    def finish(self, record: RoundRecord) -> None:
        """Keep a round whose samples are in its file."""
        self.begun.rounds.append(record)
        write_whole(self._file, self.begun.model_dump_json())

    def repeat(self, entry: Disturbance) -> None:
        """Count a disturbed round as missing again, and note why."""
        self.begun.rounds = [one for one in self.begun.rounds if one.round != entry.round]
        self.begun.repeated.append(entry)
        write_whole(self._file, self.begun.model_dump_json())

    def rows(self) -> list[Row]:
        """The samples of all finished rounds."""
        return [row for one in self.records for row in read_rows(self.round_file(one.round))]


def digest_of(path: Path) -> str:
    """SHA-256 of a file in hex."""
    return hashlib.sha256(read_bytes(path)).hexdigest()
