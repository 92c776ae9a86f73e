"""From the finished rounds of a run to its files in the results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from analysis.base.files import remove
from analysis.base.records import records_text
from analysis.measure.journal import Journal
from analysis.measure.machine import describe
from analysis.measure.plan import wrong_output
from analysis.measure.round import DISCARDED_HOST_PASSES
from analysis.measure.run import Host
from analysis.measure.telemetry import read_telemetry, with_clocks
from analysis.results.store import METHOD_VERSION, keys
from analysis.results.store.records import CAPTURED, Reading
from analysis.results.store.runs import add, discard_superfluous
from analysis.results.store.samples import CSV_LIMIT_BYTES, Row, to_text
from analysis.study.peers import releases
from analysis.study.source import fingerprint


def publish(journal: Journal, host: Host) -> Iterator[str]:
    """Put the run's files into the results, delete its journal, and yield a line per variant.

    It can be stopped and restarted at any point. If an output was wrong, StudyError at the end,
    after all results are stored.
    """
    plan, run, study = journal.plan, journal.run, journal.plan.study
    readings, lacking = list[Reading](), "no GPU"
    if plan.gpus and not study.telemetry:
        lacking = "off: this study measures nanoseconds"
    elif plan.gpus:
        readings, damaged = read_telemetry(journal.telemetry_file, journal.records.values())
        lacking = "no sample fell into a cell of this variant"
        if damaged:
            yield f"{study.name}: {damaged} damaged lines of telemetry are left out"
    rows = [*with_clocks(journal.rows(), readings)]
    telemetry = records_text(Reading, readings, ".12g")
    if len(telemetry) > CSV_LIMIT_BYTES:
        readings, lacking = [], f"more than {CSV_LIMIT_BYTES} bytes"
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
    captured = {reading.variant for reading in readings}
    none = f"not captured: {lacking}"
    about.telemetry = {name: CAPTURED if name in captured else none for name in variants}
    about.variants = variants
    texts = {f"{run}.csv": to_text(rows)}
    add(plan.results, about, texts | ({f"{run}.telemetry.csv": telemetry} if readings else {}))
    if journal.folder.exists():
        remove(journal.folder)
    for deleted in discard_superfluous(plan.results, study):
        yield f"{study.name}: {deleted} is deleted: enough newer runs have its cells"
    wrong = sorted({row.cell for row in rows if row.status == "failed"})
    for name, entry in variants.items():
        samples = sum(len(v) for row in rows if row.variant == name for v in row.values.values())
        cases = [case for variant, case in wrong if variant == name]
        failed = f"; WRONG OUTPUT in {len(cases)} cases: {'; '.join(cases)}" if cases else ""
        outcome = f"skipped: {entry.unmet}" if entry.unmet else f"{samples} samples{failed}"
        yield f"{study.name}/{name}: {outcome}"
    if wrong:
        raise wrong_output(study.name, dict.fromkeys(variant for variant, _ in wrong))


def _description(journal: Journal, host: Host) -> keys.RunFile:
    """The description of the run, without its files, telemetry and variants."""
    plan, begun, tools = journal.plan, journal.begun, host.toolchain
    records = [record for _, record in sorted(journal.records.items())]
    began, moment = keys.start_of(begun.run), datetime.fromisoformat  # the clock may be set back
    start = max(began, min((one.start for one in records), key=moment, default=began), key=moment)
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
        end=max([start, *(one.end for one in records)], key=moment),
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
