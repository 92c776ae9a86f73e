"""The journal of a run: its finished rounds, until they are in the results.

<build>/rounds/<machine>/<study>/<grid>-<host>/
    round-00.csv, round-00.json   the samples of a round, and its record, which makes it finished
    telemetry.csv                 of all rounds

A crash costs at most the current round. Rounds of a run that is in the results, or of another plan
than today's command has, are of no use and removed.
"""

from __future__ import annotations

import hashlib
import time
from collections import ChainMap
from collections.abc import Iterator
from pathlib import Path

from analysis import ROOT
from analysis.base.errors import FieldError, HotpathError
from analysis.base.files import remove, write_whole
from analysis.base.keys import UtcTime, read
from analysis.base.reading import read_bytes, read_json
from analysis.measure.machine import commit_of, utc_now
from analysis.measure.plan import Plan
from analysis.measure.round import Visit
from analysis.results.store import keys
from analysis.results.store.samples import Row, read_rows


class Begun(keys.Keys):
    """The beginning of a run: digest of its plan, name, commit, and bounds of claims."""

    plan: keys.Digest
    run: keys.RunName
    commit: keys.Token | None
    dirty: bool | None
    bounds: keys.Bounds


class RoundRecord(keys.Disturbance):
    """A finished round of a run: number, what disturbed it and its earlier tries, start and end,
    the GPU's energy in joules if counted, the host before and after it, its visits to cells in
    their order, the seconds of its stages, and the checksum of its samples."""

    begun: Begun
    repeated: list[list[str]]
    start: UtcTime
    end: UtcTime
    energy_j: float | None
    before: keys.Look
    after: keys.Look
    visits: list[Visit]
    stages_s: keys.Stages
    samples_sha256: keys.Digest


class Journal:
    """The finished rounds of a plan. A run without any begins now; a resumed one keeps its name."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.folder = plan, plan.journal
        self.telemetry_file = self.folder / "telemetry.csv"
        self.records = {record.round: record for record in self._read()}
        """The finished rounds by number."""
        runs = {record.begun.run: record.begun for record in self.records.values()}
        if len(runs) == 1 and not any(map(self._is_published, runs)):
            (self.begun,) = runs.values()
            return
        self.records = {}
        if self.folder.exists():
            remove(self.folder)
        while self._is_published(run := keys.name_of_run(utc_now(), plan.place.host)):
            time.sleep(0.1)  # two runs within a second
        code = commit_of(ROOT)
        bounds = dict(ChainMap(*(plan.study.bounds_of(variant.name) for variant in plan.variants)))
        self.begun = Begun(
            plan=plan.digest, run=run, commit=code.name, dirty=code.dirty, bounds=bounds
        )

    def _read(self) -> Iterator[RoundRecord]:
        """The rounds of today's plan that are whole. A line names each other one."""
        for number in range(self.plan.grid.rounds):
            samples = self.round_file(number)
            if not (path := samples.with_suffix(".json")).exists():
                continue
            try:
                record = read(RoundRecord, read_json(path), f"{path}")
                if record.begun.plan != self.plan.digest:
                    raise HotpathError(f"{path.name}: the code or settings have changed")
                if (got := digest_of(samples)) != record.samples_sha256:
                    raise FieldError(f"{samples}: checksum", "that of the record", got)
                yield record
            except HotpathError as error:
                print(f"{self.plan.study.name}: a round is dropped: {error}", flush=True)

    def _is_published(self, run: str) -> bool:
        return (self.plan.results / f"{run}.json").exists()

    @property
    def run(self) -> str:
        """The run's name."""
        return self.begun.run

    def round_file(self, number: int) -> Path:
        """The samples of a round."""
        return self.folder / f"round-{number:02}.csv"

    def to_measure(self) -> list[int]:
        """The numbers of the missing rounds; without any, those of disturbed ones to repeat: fewer
        than half of all, as another try is no better where more are disturbed."""
        rounds = range(self.plan.grid.rounds)
        disturbed = [number for number, record in sorted(self.records.items()) if record.why]
        tries = sum(len(record.repeated) for record in self.records.values())
        missing = [number for number in rounds if number not in self.records]
        return missing or disturbed[: max((len(rounds) - 1) // 2 - tries, 0)]

    def finish(self, record: RoundRecord) -> None:
        """Keep a round whose samples are in its file."""
        path = self.round_file(record.round).with_suffix(".json")
        write_whole(path, record.model_dump_json())
        self.records[record.round] = record

    def rows(self) -> list[Row]:
        """The samples of all finished rounds."""
        return [
            row for number in sorted(self.records) for row in read_rows(self.round_file(number))
        ]


def digest_of(path: Path) -> str:
    """SHA-256 of a file in hex."""
    return hashlib.sha256(read_bytes(path)).hexdigest()
