"""From the finished rounds of a run to its files in the results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from analysis.base.files import remove_together
from analysis.base.records import records_text
from analysis.measure.journal import Journal
from analysis.measure.machine import describe
from analysis.measure.plan import wrong_output
from analysis.measure.round import DISCARDED_HOST_PASSES
from analysis.measure.run import Host, disturbed
from analysis.measure.telemetry import read_telemetry, with_clocks
from analysis.results.store import METHOD_VERSION
from analysis.results.store.keys import (
    FORMAT,
    Compiler,
    RunFile,
    Stages,
    VariantKeys,
    start_of,
    without_private,
)
from analysis.results.store.records import Reading
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
    readings, lacking = _telemetry(journal)
    rows = [*with_clocks(journal.rows(), readings)]
    measured = {row.variant for row in rows}  # their needs may have been met only until now
    unmet = {
        v.name: None if v.name in measured else plan.place.unmet(v)
        for v in plan.variants
        if v.in_grid(plan.grid.name)
    }
    rows += [
        Row(name, case.id, 0, {}, 0, "skipped", without_private(reason), "", None, start_of(run))
        for name, reason in unmet.items()
        if reason
        for case in study.variant(name).in_grid(plan.grid.name)
    ]
    is_skipped = all(row.status == "skipped" for row in rows)
    if is_skipped:  # such a run has no rounds
        rows = [replace(row, round=0) for row in {row.cell: row for row in rows}.values()]
    texts = {f"{run}.csv": to_text(rows)}
    if readings:
        texts[f"{run}.telemetry.csv"] = records_text(Reading, readings, ".12g")
    captured = {reading.variant for reading in readings}
    telemetry = {v: "captured" if v in captured else f"not captured: {lacking}" for v in unmet}
    about = _run_file(journal, host, unmet, telemetry)
    if is_skipped:
        about = about.model_copy(update={"rounds": 0, "disturbed": [], "repeated": []})
    add(plan.results, about, texts)
    if journal.folder.exists():
        remove_together(journal.folder)
    for deleted in discard_superfluous(plan.results, study, plan.place.host):
        yield f"{study.name}: {deleted} is deleted: enough newer runs have its cells"
    yield from _outcome(study.name, rows, unmet)
    if seconds := sum(record.seconds for record in journal.records):
        yield f"{study.name}: measured for {seconds:.0f} s, budget {study.budget_s} s"
    if wrong := sorted({row.variant for row in rows if row.status == "failed"}):
        raise wrong_output(study.name, wrong)


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


def _outcome(study: str, rows: Sequence[Row], unmet: Mapping[str, str | None]) -> Iterator[str]:
    """A line per variant."""
    for name, reason in unmet.items():
        of_variant = [row for row in rows if row.variant == name]
        samples = sum(len(values) for row in of_variant for values in row.values.values())
        failed = sorted({row.case for row in of_variant if row.status == "failed"})
        outcome = f"skipped: {reason}" if reason else f"{samples} samples"
        wrong = f"; WRONG OUTPUT in {len(failed)} cases: {'; '.join(failed)}" if failed else ""
        yield f"{study}/{name}: {outcome}{wrong}"


def _run_file(
    journal: Journal, host: Host, unmet: Mapping[str, str | None], telemetry: Mapping[str, str]
) -> RunFile:
    """The description of the run, without its files."""
    plan, begun, records = journal.plan, journal.begun, journal.records
    # The clock may be set back.
    began, moment = start_of(begun.run), datetime.fromisoformat
    start = max(began, min((one.start for one in records), key=moment, default=began), key=moment)
    energies = [one.energy_j for one in records if one.energy_j is not None]
    stages = {
        name: round(sum(getattr(one.stages_s, name) for one in records), 3)
        for name in Stages.model_fields
    }
    return RunFile(
        format=FORMAT,
        method_version=METHOD_VERSION,
        machine=plan.place.machine,
        study=plan.study.name,
        run=begun.run,
        grid=plan.grid.name,
        rounds=len(records),
        asked=list(plan.asked),
        start=start,
        end=max([start, *(one.end for one in records)], key=moment),
        commit=begun.commit,
        dirty=begun.dirty,
        command=without_private(host.command),
        files={},
        host=describe(plan.place.gpus).model_copy(update={"id": plan.place.host}),
        telemetry=dict(telemetry),
        compiler=Compiler(
            nvcc=host.toolchain.version, cxx=host.toolchain.cxx_version, arch=host.arch
        ),
        variants={
            name: VariantKeys(
                source_sha256=fingerprint(plan.study, plan.study.variant(name)),
                flags=list(plan.study.variant(name).flags),
                packages=versions_of(plan.study.variant(name).packages),
                unmet=reason,
            )
            for name, reason in unmet.items()
        },
        bounds=begun.bounds,
        conditions=[*(one.before for one in records), *(one.after for one in records[-1:])],
        disturbed=disturbed(journal),
        repeated=begun.repeated,
        stages_s=Stages(**stages) if records else None,
        # Energy of the whole run: all variants, and the gaps between them.
        energy_j=round(sum(energies), 3) if energies and len(energies) == len(records) else None,
        discarded_host_passes=DISCARDED_HOST_PASSES,
        other_processes=list(host.others),
    )
