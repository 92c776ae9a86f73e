"""From the finished rounds of a run to its files in the results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime

from analysis.base.files import remove_together
from analysis.measure.conditions import recent_conditions
from analysis.measure.journal import Journal, RoundRecord
from analysis.measure.machine import describe
from analysis.measure.needs import Provision
from analysis.measure.plan import Plan, wrong_output
from analysis.measure.round import DISCARDED_HOST_PASSES
from analysis.measure.run import Host, disturbed
from analysis.measure.telemetry import by_variant, telemetry_text, whole_rows, with_clocks
from analysis.results.store import METHOD_VERSION
from analysis.results.store.keys import (
    FORMAT,
    Compiler,
    Look,
    RunFile,
    Stages,
    VariantKeys,
    start_of,
    without_private,
)
from analysis.results.store.runs import add, discard_superfluous
from analysis.results.store.samples import CSV_LIMIT_BYTES, Row, to_text
from analysis.study import Variant
from analysis.study.source import fingerprint


def publish(plan: Plan, provision: Provision, host: Host) -> Iterator[str]:
    """Put the run's files into the results, delete its journal, and yield a line per variant.

    It can be stopped and restarted at any point. If an output was wrong, StudyError at the end,
    after all results are stored.
    """
    journal = Journal(plan)
    telemetry = _telemetry(journal)
    rows = [*with_clocks(journal.rows(), telemetry)]
    measured = {row.variant for row in rows}  # their needs may have been met only until now
    unmet = {
        v.name: None if v.name in measured else provision.unmet(v)
        for v in plan.variants
        if v.in_grid(plan.grid.name)
    }
    rows = [
        *rows,
        *(
            _skipped(variant, case.id, journal.run, reason)
            for variant in plan.variants
            for case in variant.in_grid(plan.grid.name)
            if (reason := unmet[variant.name])
        ),
    ]
    is_skipped = all(row.status == "skipped" for row in rows)
    if is_skipped:  # such a run has no rounds
        rows = [replace(row, round=0) for row in {row.cell: row for row in rows}.values()]
    texts = {f"{journal.run}.csv": to_text(rows)}
    reason = _no_telemetry(plan, host)
    if telemetry:
        text = telemetry_text(telemetry)
        if len(text) > CSV_LIMIT_BYTES:
            telemetry, reason = {}, f"more than {CSV_LIMIT_BYTES} bytes"
        else:
            texts[f"{journal.run}.telemetry.csv"] = text
    status = {v: "captured" if v in telemetry else f"not captured: {reason}" for v in unmet}
    about = _run_file(plan, provision, host, journal, unmet, status)
    if is_skipped:
        about = about.model_copy(update={"rounds": 0, "disturbed": [], "repeated": []})
    add(plan.results, about, texts)
    if journal.folder.exists():
        remove_together(journal.folder)
    for deleted in discard_superfluous(plan.results, plan.study, plan.where.host):
        yield f"{plan.study.name}: {deleted} is deleted: enough newer runs have its cells"
    yield from _outcome(plan, rows, unmet)
    if seconds := sum(record.seconds for record in journal.records.values()):
        yield f"{plan.study.name}: measured for {seconds:.0f} s, budget {plan.study.budget_s} s"
    if wrong := sorted({row.variant for row in rows if row.status == "failed"}):
        raise wrong_output(plan.study.name, wrong)


def _outcome(plan: Plan, rows: Sequence[Row], unmet: Mapping[str, str | None]) -> Iterator[str]:
    """A line per variant."""
    for name, reason in unmet.items():
        of_variant = [row for row in rows if row.variant == name]
        samples = sum(len(values) for row in of_variant for values in row.values.values())
        failed = sorted({row.case for row in of_variant if row.status == "failed"})
        outcome = f"skipped: {reason}" if reason else f"{samples} samples"
        wrong = f"; WRONG OUTPUT in {len(failed)} cases: {'; '.join(failed)}" if failed else ""
        yield f"{plan.study.name}/{name}: {outcome}{wrong}"


def _run_file(
    plan: Plan,
    provision: Provision,
    host: Host,
    journal: Journal,
    unmet: Mapping[str, str | None],
    telemetry: Mapping[str, str],
) -> RunFile:
    """The description of the run, without its files."""
    begin, records = journal.begin(), [*journal.records.values()]
    energies = [record.energy_j for record in records]
    known = [energy for energy in energies if energy is not None]
    variants = {v.name: v for v in plan.variants if v.name in unmet}
    # The clock may be set back.
    began, moment = start_of(journal.run), datetime.fromisoformat
    start = max(began, min((one.start for one in records), key=moment, default=began), key=moment)
    return RunFile(
        format=FORMAT,
        method_version=METHOD_VERSION,
        machine=plan.where.machine,
        study=plan.study.name,
        run=begin.run,
        grid=plan.grid.name,
        rounds=len(records),
        asked=list(plan.asked),
        start=start,
        end=max([start, *(record.end for record in records)], key=moment),
        commit=begin.commit,
        dirty=begin.dirty,
        command=without_private(host.command),
        files={},
        host=describe(provision.gpus).model_copy(update={"id": plan.where.host}),
        telemetry=dict(telemetry),
        compiler=Compiler(
            nvcc=host.toolchain.version, cxx=host.toolchain.cxx_version, arch=host.arch
        ),
        variants={
            name: VariantKeys(
                source_sha256=fingerprint(plan.study, variant),
                flags=list(variant.flags),
                unmet=unmet[name],
            )
            for name, variant in variants.items()
        },
        bounds=begin.bounds,
        # Before every round, and once more now.
        conditions=[
            *(record.conditions for record in records),
            Look(**asdict(recent_conditions())),
        ],
        disturbed=disturbed(journal),
        repeated=journal.repeated,
        stages_s=_stages(records),
        # Energy of the whole run: all variants, and the gaps between them.
        energy_j=round(sum(known), 3) if records and len(known) == len(records) else None,
        discarded_host_passes=DISCARDED_HOST_PASSES,
        other_processes=host.others,
    )


def _stages(records: Sequence[RoundRecord]) -> Stages | None:
    """The seconds of all rounds by stage."""
    if not records:
        return None
    names = Stages.model_fields
    return Stages(**{n: round(sum(getattr(r.stages_s, n) for r in records), 3) for n in names})


def _skipped(variant: Variant, case: str, run: str, reason: str) -> Row:
    at = start_of(run)
    return Row(variant.name, case, 0, {}, 0, "skipped", without_private(reason), "", None, at)


def _telemetry(journal: Journal) -> dict[str, list[list[str]]]:
    """Telemetry rows by variant."""
    if not journal.telemetry_file.exists():
        return {}
    rows, lost = whole_rows(journal.telemetry_file)
    if lost:
        print(f"{journal.telemetry_file}: {lost} damaged rows are left out", flush=True)
    ends = [record.end for record in journal.records.values()]
    return by_variant(rows, journal.visits(), ends)


def _no_telemetry(plan: Plan, host: Host) -> str:
    if not host.gpus:
        return "no GPU"
    if not plan.study.telemetry:
        return "off: this study measures nanoseconds"
    return "no sample fell into a cell of this variant"
