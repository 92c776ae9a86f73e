"""The journal of a run: its finished rounds, until they are in the results.

<build>/rounds/<machine>/<study>/<grid>-<host>/
    round-00.json   a finished round

A crash costs at most the current round. Rounds of a run that is in the results, or of another plan
than today's command has, are of no use and removed.
"""

from __future__ import annotations

import time
from collections import ChainMap
from collections.abc import Iterator
from pathlib import Path

from analysis import ROOT
from analysis.base.errors import HotpathError
from analysis.base.files import remove, write_whole
from analysis.base.keys import UtcTime, read
from analysis.base.reading import read_json
from analysis.base.records import parse_records
from analysis.measure.machine import commit_of, utc_now
from analysis.measure.plan import Plan
from analysis.results.store import keys
from analysis.results.store.records import Reading
from analysis.results.store.samples import Row


class Begun(keys.Keys):
    """The beginning of a run: digest of its plan, name, commit, and bounds of claims."""

    plan: keys.Digest
    run: keys.RunName
    commit: keys.Token | None
    dirty: bool | None
    bounds: keys.Bounds


class RoundRecord(keys.Disturbance):
    """A finished round of a run: number, what disturbed it and its earlier tries, its end, the
    GPU's energy in joules if counted, the host before and after it, the seconds of its stages, and
    its samples and telemetry, each as the text of a CSV file."""

    begun: Begun
    repeated: list[list[str]]
    end: UtcTime
    energy_j: float | None
    before: keys.Look
    after: keys.Look
    stages_s: keys.Stages
    samples: str
    telemetry: str

    def content(self) -> tuple[list[Row], list[Reading]]:
        """The samples and the telemetry; HotpathError for what no result may have."""
        where = Path(f"round {self.round}")
        telemetry = parse_records(where, self.telemetry, Reading)
        return parse_records(where, self.samples, Row), telemetry


class Journal:
    """The finished rounds of a plan. A run without any begins now; a resumed one keeps its name."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.folder = plan, plan.journal
        self.records = {record.round: record for record in self._read()}
        """The finished rounds by number."""
        begun = {record.begun.run: record.begun for record in self.records.values()}
        if len(begun) == 1 and not any(map(self._is_published, begun)):
            (self.begun,) = begun.values()
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
        for path in map(self.file_of, range(self.plan.grid.rounds)):
            if not path.exists():
                continue
            try:
                record = read(RoundRecord, read_json(path), f"{path}")
                if record.begun.plan != self.plan.digest:
                    raise HotpathError(f"{path.name}: the code or settings have changed")
                record.content()
                yield record
            except HotpathError as error:
                print(f"{self.plan.study.name}: a round is dropped: {error}", flush=True)

    def _is_published(self, run: str) -> bool:
        return (self.plan.results / f"{run}.json").exists()

    def file_of(self, number: int) -> Path:
        """The file of a finished round."""
        return self.folder / f"round-{number:02}.json"

    def to_measure(self) -> list[int]:
        """The numbers of the missing rounds; without any, those of disturbed ones to repeat: fewer
        than half of all, as another try is no better where more are disturbed."""
        rounds = range(self.plan.grid.rounds)
        disturbed = [number for number, record in sorted(self.records.items()) if record.why]
        tries = sum(len(record.repeated) for record in self.records.values())
        missing = [number for number in rounds if number not in self.records]
        return missing or disturbed[: max((len(rounds) - 1) // 2 - tries, 0)]

    def finish(self, record: RoundRecord) -> None:
        """Keep a round."""
        write_whole(self.file_of(record.round), record.model_dump_json())
        self.records[record.round] = record
