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
from analysis.measure.run import Host, disturbed
from analysis.measure.telemetry import read_telemetry, with_clocks
from analysis.results.store import METHOD_VERSION, keys
from analysis.results.store.records import CAPTURED, Reading
from analysis.results.store.runs import add, discard_superfluous
from analysis.results.store.samples import CSV_LIMIT_BYTES, Row, to_text
from analysis.study.peers import versions_of
from analysis.study.source import fingerprint


def publish(journal: Journal, host: Host) -> Iterator[str]:
    """Put the run's files into the results, delete its journal, and yield a line per variant.

    It can be stopped and restarted at any point. If an output was wrong, StudyError at the end,
    after all results are stored.
    """
    plan, run, study = journal.plan, journal.run, journal.plan.study
    telemetry, lacking = _telemetry(journal)
    rows = [*with_clocks(journal.rows(), telemetry)]
    measured = {row.variant for row in rows}  # their needs may have been met only until now
    variants = {
        v.name: keys.VariantKeys(
            source_sha256=fingerprint(study, v),
            flags=list(v.flags),
            packages=versions_of(v.packages),
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
    about = _run_file(journal, host)
    if all(row.status == "skipped" for row in rows):
        rows = [replace(row, round=0) for row in {row.cell: row for row in rows}.values()]
        about.rounds = 0
    captured = {reading.variant for reading in telemetry}
    none = f"not captured: {lacking}"
    about.telemetry = {name: CAPTURED if name in captured else none for name in variants}
    about.variants = variants
    texts = {f"{run}.csv": to_text(rows)}
    if telemetry:
        texts[f"{run}.telemetry.csv"] = records_text(Reading, telemetry, ".12g")
    add(plan.results, about, texts)
    if journal.folder.exists():
        remove(journal.folder)
    for deleted in discard_superfluous(plan.results, study, plan.place.host):
        yield f"{study.name}: {deleted} is deleted: enough newer runs have its cells"
    wrong = {row.cell for row in rows if row.status == "failed"}
    for name, entry in variants.items():
        samples = sum(len(v) for row in rows if row.variant == name for v in row.values.values())
        cases = sorted(case for variant, case in wrong if variant == name)
        failed = f"; WRONG OUTPUT in {len(cases)} cases: {'; '.join(cases)}" if cases else ""
        outcome = f"skipped: {entry.unmet}" if entry.unmet else f"{samples} samples{failed}"
        yield f"{study.name}/{name}: {outcome}"
    if wrong:
        raise wrong_output(study.name, sorted({variant for variant, _ in wrong}))


def _telemetry(journal: Journal) -> tuple[list[Reading], str]:
    """The run's telemetry, and the reason why a variant has none."""
    if not journal.plan.gpus:
        return [], "no GPU"
    if not journal.plan.study.telemetry:
        return [], "off: this study measures nanoseconds"
    file = journal.telemetry_file
    readings = read_telemetry(file, journal.records) if file.exists() else []
    if len(records_text(Reading, readings, ".12g")) > CSV_LIMIT_BYTES:
        return [], f"more than {CSV_LIMIT_BYTES} bytes"
    return readings, "no sample fell into a cell of this variant"


def _run_file(journal: Journal, host: Host) -> keys.RunFile:
    """The description of the run, without its files, telemetry and variants."""
    plan, begun, records, tools = journal.plan, journal.begun, journal.records, host.toolchain
    # The clock may be set back.
    began, moment = keys.start_of(begun.run), datetime.fromisoformat
    start = max(began, min((one.start for one in records), key=moment, default=began), key=moment)
    energies = [one.energy_j for one in records if one.energy_j is not None]
    stages = [one.stages_s.model_dump() for one in records]
    sums = {name: round(sum(one[name] for one in stages), 3) for name in keys.Stages.model_fields}
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
        disturbed=disturbed(journal),
        stages_s=keys.Stages(**sums) if records else None,
        # Energy of the whole run: all variants, and the gaps between them.
        energy_j=round(sum(energies), 3) if energies and len(energies) == len(records) else None,
        discarded_host_passes=DISCARDED_HOST_PASSES,
        other_processes=list(host.others),
        **begun.model_dump(include={"run", "commit", "dirty", "bounds", "repeated"}),
    )
