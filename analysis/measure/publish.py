"""From the finished rounds of a run to the results folder: samples, provenance, telemetry."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from analysis import ROOT
from analysis.errors import HotpathError
from analysis.measure.clock import utc_now
from analysis.measure.conditions import conditions
from analysis.measure.machine import describe
from analysis.measure.needs import Provision
from analysis.measure.plan import Plan
from analysis.measure.round import DISCARDED_HOST_PASSES
from analysis.measure.run import (
    Host,
    RoundRecord,
    discard_journal,
    disturbed,
    record_file,
    repeated,
    round_file,
    run_id,
    telemetry_file,
)
from analysis.measure.telemetry import by_variant, with_throttling, write_telemetry
from analysis.source import fingerprint
from analysis.store import METHOD_VERSION
from analysis.store.results import add_run, shrink
from analysis.store.samples import Sample, read_samples
from analysis.study import Variant

COMMIT_VARIABLE = "HOTPATH_COMMIT"
"""Environment variable with the commit of a clean tree that was copied without its .git."""


def publish(plan: Plan, provision: Provision, host: Host) -> Iterator[str]:
    """Add the run to the results, delete its journal, and yield a log line for each variant.

    At the end HotpathError, if an output was wrong: all is kept, but nothing that runs this may end
    as if all were well.
    """
    run = run_id(plan)
    wrong: list[str] = []
    skipped = {variant.name: provision.unmet(variant) for variant in plan.variants}
    is_measured = not all(skipped.values())
    numbers = range(plan.grid.rounds) if is_measured else range(0)
    samples = [sample for n in numbers for sample in read_samples(round_file(plan, n))]
    records = [RoundRecord(**json.loads(record_file(plan, n).read_text())) for n in numbers]
    machine = describe(host.gpu)
    folder = plan.where.root / plan.where.machine
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "machine.json").write_text(json.dumps(machine, indent=1) + "\n")
    kept = {"disturbed": disturbed(plan), "repeated": repeated(plan)}
    telemetry = _telemetry(plan, samples, records)
    samples = list(with_throttling(samples, telemetry))
    for variant in plan.variants:
        if not _cases(plan, variant):
            continue  # a companion without a case in this grid
        reason = skipped[variant.name]
        variant_samples = [sample for sample in samples if sample.variant == variant.name]
        if reason:
            variant_samples = [
                _skipped(plan, variant, case_id, run, reason) for case_id in _cases(plan, variant)
            ]
        provenance = _provenance(plan, variant, host, run, records, machine) | kept
        provenance["unmet"] = reason
        telemetry_rows = telemetry.get(variant.name)
        status = "captured" if telemetry_rows else f"not captured: {_no_telemetry(plan, host)}"
        provenance["captures"] = {"telemetry": {"status": status, "at": run}}
        add_run(
            plan.where.root,
            plan.where.machine,
            plan.study.name,
            variant.name,
            variant_samples,
            provenance,
        )
        if telemetry_rows:
            path = folder / plan.study.name / f"{variant.name}.telemetry.csv"
            write_telemetry(path, telemetry_rows)
        failed = sorted({s.case for s in variant_samples if s.status == "failed"})
        wrong += [variant.name] if failed else []
        outcome = f"skipped: {reason}" if reason else f"{len(variant_samples)} samples"
        yield f"{plan.study.name}/{variant.name}: {outcome}" + (
            f"; WRONG OUTPUT in {len(failed)} cases: {'; '.join(failed)}" if failed else ""
        )
    discard_journal(plan)
    shrink(plan.where.root, plan.where.machine)
    if records:
        seconds = sum(
            (datetime.fromisoformat(r.end) - datetime.fromisoformat(r.start)).total_seconds()
            for r in records
        )
        yield f"{plan.study.name}: measured for {seconds:.0f} s, budget {plan.study.budget_s} s"
    if wrong:
        names = ", ".join(wrong)
        raise HotpathError(
            f"{plan.study.name}: wrong output of {names}; marked failed in the results"
        )


def _cases(plan: Plan, variant: Variant) -> list[str]:
    return [case.id for case in variant.in_grid(plan.grid.name)]


def _skipped(plan: Plan, variant: Variant, case_id: str, run: str, reason: str) -> Sample:
    metric = next(iter(plan.study.metrics.values()))
    return Sample(
        study=plan.study.name,
        variant=variant.name,
        case=case_id,
        metric=metric.name,
        unit=metric.unit,
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


def _telemetry(
    plan: Plan, samples: Sequence[Sample], records: Sequence[RoundRecord]
) -> dict[str, list[list[str]]]:
    path = telemetry_file(plan)
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return by_variant(list(csv.reader(file)), samples, [record.end for record in records])


def _no_telemetry(plan: Plan, host: Host) -> str:
    if host.gpu is None:
        return "no GPU"
    if not plan.study.telemetry:
        return "off: this study measures nanoseconds"
    return "no sample fell into a cell of this variant"


def _provenance(
    plan: Plan,
    variant: Variant,
    host: Host,
    run: str,
    records: Sequence[RoundRecord],
    machine: dict[str, Any],
) -> dict[str, Any]:
    commit, dirty = _commit()
    energies = [record.energy_j for record in records]
    known = [energy for energy in energies if energy is not None]
    return {
        "run": run,
        "commit": commit,
        "dirty": dirty,
        "source_sha256": fingerprint(plan.study, variant),
        "method_version": METHOD_VERSION,
        "compiler": {
            "nvcc": host.toolchain.version,
            "cxx": host.toolchain.cxx_version,
            "arch": host.arch,
            "flags": list(variant.flags),
        },
        "command": " ".join(["python", "-m", "analysis.measure", *sys.argv[1:]]),
        "grid": plan.grid.name,
        "rounds": len(records),
        "beside": [other.name for other in plan.variants if other != variant],
        # Before every round, and once more now.
        "conditions": [record.conditions for record in records] + [asdict(conditions())],
        "discarded_host_passes": DISCARDED_HOST_PASSES,
        "start": records[0].start if records else run,
        "end": records[-1].end if records else utc_now(),
        # Of the whole run: all variants, and the gaps between them.
        "energy_j": round(sum(known), 3) if records and len(known) == len(records) else None,
        "shared_with_processes": host.others,
        "machine": machine,
    }


def _commit() -> tuple[str | None, bool | None]:
    """The measured commit, and whether anything except results differs from it; None if unknown."""
    if named := os.environ.get(COMMIT_VARIABLE):
        return named, False
    try:
        head = _git("rev-parse", "HEAD").strip()
        return head, bool(_git("status", "--porcelain", "--", ".", ":!results").strip())
    except (OSError, subprocess.CalledProcessError):
        return None, None


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
