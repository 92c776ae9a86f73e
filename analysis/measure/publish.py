"""From the finished rounds of a run to its files in the results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from analysis.base.files import remove
from analysis.base.records import records_text
from analysis.measure.journal import Journal
from analysis.measure.machine import describe
from analysis.measure.round import DISCARDED_HOST_PASSES
from analysis.measure.run import Host
from analysis.results.store import METHOD_VERSION, keys
from analysis.results.store.records import CAPTURED, Reading
from analysis.results.store.runs import add, discard_superfluous
from analysis.results.store.samples import CSV_LIMIT_BYTES, Row, to_text
from analysis.study.peers import releases
from analysis.study.source import fingerprint


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
