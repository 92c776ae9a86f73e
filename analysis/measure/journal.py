"""The journal of a run: its finished rounds, and how they become files of the results.

<build>/rounds/<machine>/<study>/<grid>-<host>/
    round-00.json   a finished round

A crash costs at most the current round. Rounds of a run that is in the results, or of another plan
than today's command has, are of no use and removed.
"""

from __future__ import annotations

import time
from collections import ChainMap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from analysis import ROOT
from analysis.base.errors import HotpathError
from analysis.base.files import remove, write_whole
from analysis.base.keys import UtcTime, read
from analysis.base.reading import read_json
from analysis.base.records import parse_records, records_text
from analysis.measure.machine import commit_of, describe, utc_now
from analysis.measure.plan import Plan
from analysis.measure.round import DISCARDED_HOST_PASSES
from analysis.results.store import METHOD_VERSION, keys
from analysis.results.store.records import CAPTURED, Reading
from analysis.results.store.runs import add, discard_superfluous
from analysis.results.store.samples import CSV_LIMIT_BYTES, Row, to_text
from analysis.study.peers import releases
from analysis.study.source import fingerprint
from analysis.toolchain.compilers import Toolchain


@dataclass(frozen=True)
class Host:
    """This host as a run needs it: compilers, built modules, the time limit of a round, the command
    that asks for the run, and the other users of its GPUs."""

    toolchain: Toolchain
    arch: str
    modules: Path
    round_limit_s: float
    command: str = ""
    others: Sequence[int] = ()


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


def publish(journal: Journal, host: Host) -> Iterator[str]:
    """Put the run's files into the results, delete its journal, and yield lines about the outcome.
    It can be stopped and restarted at any point."""
    plan, run, study = journal.plan, journal.begun.run, journal.plan.study
    contents = [record.content() for _, record in sorted(journal.records.items())]
    rows = [row for of_round, _ in contents for row in of_round]
    readings = [reading for _, of_round in contents for reading in of_round]
    telemetry = records_text(Reading, readings, ".12g")
    if len(telemetry) > CSV_LIMIT_BYTES:
        readings = []
    measured = {row.variant for row in rows}  # their needs may have been met only until now
    variants = {
        v.name: keys.VariantKeys(
            source_sha256=fingerprint(study, v),
            flags=list(v.flags),
            packages={name: releases()[name] for name in v.packages},
            unmet=None if v.name in measured else plan.place.unmet(v),
        )
        for v in plan.variants
        if v.in_grid(plan.grid.name)
    }
    rows += [
        Row(name, case.id, 0, {}, 0, "skipped", entry.unmet, "", None, keys.start_of(run))
        for name, entry in variants.items()
        if entry.unmet
        for case in study.variant(name).in_grid(plan.grid.name)
    ]
    about = _description(journal, host)
    if all(row.status == "skipped" for row in rows):
        rows = [replace(row, round=0) for row in {row.cell: row for row in rows}.values()]
        about.rounds = 0
    none = "not captured: no reading that fits" if plan.gpus else "not captured: no GPU"
    captured = dict.fromkeys((reading.variant for reading in readings), CAPTURED)
    about.telemetry = dict.fromkeys(variants, none) | captured
    about.variants = variants
    texts = {f"{run}.csv": to_text(rows)}
    add(plan.results, about, texts | ({f"{run}.telemetry.csv": telemetry} if readings else {}))
    if journal.folder.exists():
        remove(journal.folder)
    discard_superfluous(plan.results, study)
    measured_cells = {row.cell for row in rows if row.status == "ok"}
    skipped = {(row.reason, row.variant) for row in rows if row.status == "skipped"}
    names = {variant for variant, _ in measured_cells}
    yield f"{study.name}: {len(names)} variants measured in {len(measured_cells)} cells"
    yield from sorted(f"{study.name}/{name}: skipped: {reason}" for reason, name in skipped)


def _description(journal: Journal, host: Host) -> keys.RunFile:
    """The description of the run, without its files, telemetry and variants."""
    plan, begun, tools = journal.plan, journal.begun, host.toolchain
    records = [record for _, record in sorted(journal.records.items())]
    start = keys.start_of(begun.run).replace("Z", ".000Z")
    energies = [one.energy_j for one in records if one.energy_j is not None]
    stages = {
        name: round(sum(getattr(one.stages_s, name) for one in records), 3)
        for name in keys.Stages.model_fields
    }
    return keys.RunFile(
        format=keys.FORMAT,
        method_version=METHOD_VERSION,
        machine=plan.place.machine,
        study=plan.study.name,
        grid=plan.grid.name,
        rounds=len(records),
        asked=list(plan.asked),
        start=start,
        end=max([start, *(one.end for one in records)]),  # the clock may be set back
        command=keys.without_private(host.command),
        files={},
        host=describe(plan.place.gpus).model_copy(update={"id": plan.place.host}),
        telemetry={},
        compiler=keys.Compiler(nvcc=tools.version, cxx=tools.cxx_version, arch=host.arch),
        variants={},
        conditions=[*(one.before for one in records), *(one.after for one in records[-1:])],
        disturbed=[keys.Disturbance(round=one.round, why=one.why) for one in records if one.why],
        repeated=[keys.Disturbance(round=r.round, why=why) for r in records for why in r.repeated],
        stages_s=keys.Stages(**stages) if records else None,
        # Energy of the whole run: all variants, and the gaps between them.
        energy_j=round(sum(energies), 3) if energies and len(energies) == len(records) else None,
        discarded_host_passes=DISCARDED_HOST_PASSES,
        other_processes=list(host.others),
        **begun.model_dump(include={"run", "commit", "dirty", "bounds"}),
    )
