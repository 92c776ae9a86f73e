"""From the finished rounds of a run to the results folder: samples, provenance, telemetry."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from analysis import ROOT
from analysis.measure.clock import utc_now
from analysis.measure.commit import commit_of
from analysis.measure.conditions import recent_conditions
from analysis.measure.journal import Journal, RoundRecord, complete
from analysis.measure.machine import describe
from analysis.measure.needs import Provision
from analysis.measure.plan import PUBLISHING, Plan
from analysis.measure.round import DISCARDED_HOST_PASSES
from analysis.measure.run import Host, disturbed
from analysis.measure.telemetry import by_variant, telemetry_text, whole_rows, with_clocks
from analysis.results.store import METHOD_VERSION
from analysis.results.store.keys import Stages
from analysis.results.store.results import Draft
from analysis.results.store.samples import Sample
from analysis.study import Variant
from analysis.study.source import fingerprint


def publish(plan: Plan, provision: Provision, host: Host) -> Iterator[str]:
    """Add the run to the results, delete its journal, and yield a log line for each variant.

    All of it is made ready before any of it is put into place; HotpathError as `complete` says.
    """
    journal = Journal(plan)
    draft, messages, wrong = drafted(plan, provision, host, journal)
    draft.shrink()
    names = ", ".join(wrong)
    error = f"{plan.study.name}: wrong output of {names}; marked failed in the results"
    journal.stage(draft.texts, messages, error if wrong else "")
    yield from complete(journal.folder / PUBLISHING, plan.where)


def drafted(
    plan: Plan, provision: Provision, host: Host, journal: Journal
) -> tuple[Draft, list[str], list[str]]:
    """The results with this run, a line for each variant, and the variants with wrong output."""
    draft = Draft(plan.where.root, plan.where.machine)
    messages: list[str] = []
    wrong: list[str] = []
    skipped = {variant.name: provision.unmet(variant) for variant in plan.variants}
    samples, records = journal.samples(), [record for _, record in sorted(journal.records.items())]
    machine = describe(provision.gpus)
    draft.put("machine.json", json.dumps(machine, indent=1) + "\n")
    of_run = _of_run(plan, host, journal, records, machine)
    telemetry = _telemetry(journal, records)
    samples = list(with_clocks(samples, telemetry))
    bounds = journal.bounds()
    for variant in plan.variants:
        if not _cases(plan, variant):
            continue  # a companion without a case in this grid
        reason = skipped[variant.name]
        variant_samples = [sample for sample in samples if sample.variant == variant.name]
        if reason:
            variant_samples = [
                _skipped(plan, variant, case_id, journal.run, reason)
                for case_id in _cases(plan, variant)
            ]
        provenance = of_run | _of_variant(plan, variant, host) | {"unmet": reason}
        provenance["bounds"] = bounds.get(variant.name, {})
        telemetry_rows = telemetry.get(variant.name)
        status = "captured" if telemetry_rows else f"not captured: {_no_telemetry(plan, host)}"
        provenance["captures"] = {"telemetry": {"status": status, "at": journal.run}}
        draft.add_run(plan.study.name, variant.name, variant_samples, provenance)
        if telemetry_rows:
            name = f"{plan.study.name}/{variant.name}.telemetry.csv"
            draft.put(name, telemetry_text(telemetry_rows))
        failed = sorted({s.case for s in variant_samples if s.status == "failed"})
        wrong += [variant.name] if failed else []
        outcome = f"skipped: {reason}" if reason else f"{len(variant_samples)} samples"
        messages.append(
            f"{plan.study.name}/{variant.name}: {outcome}"
            + (f"; WRONG OUTPUT in {len(failed)} cases: {'; '.join(failed)}" if failed else "")
        )
    if records:
        seconds = sum(record.seconds for record in records)
        messages.append(
            f"{plan.study.name}: measured for {seconds:.0f} s, budget {plan.study.budget_s} s"
        )
    return draft, messages, wrong


def _cases(plan: Plan, variant: Variant) -> list[str]:
    return [case.id for case in variant.in_grid(plan.grid.name)]


def _skipped(plan: Plan, variant: Variant, case_id: str, run: str, reason: str) -> Sample:
    return Sample(
        study=plan.study.name,
        variant=variant.name,
        case=case_id,
        metric="",
        unit="",
        value=None,
        run=run,
        round=0,
        sample=0,
        verified=0,
        status="skipped",
        reason=reason,
        throttle="",
        sm_mhz=None,
        started_at=run,
    )


def _telemetry(journal: Journal, records: Sequence[RoundRecord]) -> dict[str, list[list[str]]]:
    if not journal.telemetry_file.exists():
        return {}
    rows, lost = whole_rows(journal.telemetry_file)
    if lost:
        print(f"{journal.telemetry_file}: {lost} damaged rows are left out", flush=True)
    return by_variant(rows, journal.visits(), [record.end for record in records])


def _no_telemetry(plan: Plan, host: Host) -> str:
    if not host.gpus:
        return "no GPU"
    if not plan.study.telemetry:
        return "off: this study measures nanoseconds"
    return "no sample fell into a cell of this variant"


def _of_run(
    plan: Plan,
    host: Host,
    journal: Journal,
    records: Sequence[RoundRecord],
    machine: dict[str, Any],
) -> dict[str, Any]:
    """The provenance shared by every variant of the run."""
    commit = commit_of(ROOT)
    energies = [record.energy_j for record in records]
    known = [energy for energy in energies if energy is not None]
    return {
        "run": journal.run,
        "commit": commit.name,
        "dirty": commit.dirty,
        "method_version": METHOD_VERSION,
        "command": host.command,
        "grid": plan.grid.name,
        "rounds": len(records),
        # Before every round, and once more now.
        "conditions": [
            *(record.conditions.model_dump() for record in records),
            asdict(recent_conditions()),
        ],
        "discarded_host_passes": DISCARDED_HOST_PASSES,
        "start": min((record.start for record in records), default=journal.run),
        "end": max((record.end for record in records), default=utc_now()),
        "disturbed": disturbed(journal),
        "repeated": [{"round": entry["round"], "why": entry["why"]} for entry in journal.repeated],
        # Energy of the whole run: all variants, and the gaps between them.
        "energy_j": round(sum(known), 3) if records and len(known) == len(records) else None,
        "stages_s": _stages(records),
        "shared_with_processes": host.others,
        "machine": machine,
    }


def _stages(records: Sequence[RoundRecord]) -> dict[str, float] | None:
    """The seconds of all rounds by stage."""
    if not records:
        return None
    names = Stages.model_fields
    return {name: round(sum(getattr(r.stages_s, name) for r in records), 3) for name in names}


def _of_variant(plan: Plan, variant: Variant, host: Host) -> dict[str, Any]:
    """The part of the provenance that is specific to this variant."""
    return {
        "source_sha256": fingerprint(plan.study, variant),
        "compiler": {
            "nvcc": host.toolchain.version,
            "cxx": host.toolchain.cxx_version,
            "arch": host.arch,
            "flags": list(variant.flags),
        },
        "beside": [other.name for other in plan.variants if other != variant],
    }
