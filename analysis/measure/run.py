"""The rounds of one run: one supervised process each, whose samples are kept when it finishes."""

from __future__ import annotations

import json
import multiprocessing
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import psutil

from analysis.errors import HotpathError
from analysis.gpu import Gpu
from analysis.measure.clock import utc_now
from analysis.measure.conditions import conditions
from analysis.measure.disturbance import Watch, disturbances
from analysis.measure.needs import Provision
from analysis.measure.plan import Plan
from analysis.measure.round import RoundJob, run_round
from analysis.store.samples import read_samples
from analysis.study import Variant
from analysis.toolchain.compilers import Toolchain


@dataclass(frozen=True)
class Host:
    """Where a run happens: the GPU, its other users, compilers, built modules, and the time limit
    of a round."""

    gpu: Gpu | None
    others: list[int]
    toolchain: Toolchain
    arch: str
    modules: Path
    round_limit_s: float


@dataclass(frozen=True)
class RoundRecord:
    """When a finished round ran, the host before and after it, the GPU's energy meanwhile, in
    joules where it is counted, and the processes of others that came to the GPU."""

    start: str
    end: str
    energy_j: float | None
    conditions: Mapping[str, float | None] = field(default_factory=dict)
    after: Mapping[str, float | None] = field(default_factory=dict)
    newcomers: Sequence[int] = ()

    @property
    def seconds(self) -> float:
        took = datetime.fromisoformat(self.end) - datetime.fromisoformat(self.start)
        return took.total_seconds()


def round_file(plan: Plan, number: int) -> Path:
    return plan.journal / f"round-{number:02}.csv"


def record_file(plan: Plan, number: int) -> Path:
    return round_file(plan, number).with_suffix(".json")


def telemetry_file(plan: Plan) -> Path:
    return plan.journal / "telemetry.csv"


def repeats_file(plan: Plan) -> Path:
    return plan.journal / "repeated.json"


def run_id(plan: Plan) -> str:
    """UTC start of the run; a resumed run keeps its original start."""
    path = plan.journal / "run"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(utc_now("seconds"))
    return path.read_text()


def run_rounds(plan: Plan, provision: Provision, host: Host) -> None:
    """Run the rounds of `plan` that are missing from its journal, and repeat disturbed ones.

    HotpathError names the cell if a round fails or takes too long. Finished rounds are kept.
    """
    runnable = [variant for variant in plan.variants if provision.unmet(variant) is None]
    run = run_id(plan)
    if not runnable or not _missing(plan):
        return
    context = multiprocessing.get_context("forkserver")
    needs_torch = any("torch" in variant.needs for variant in runnable)
    # Imported once, before any use of a GPU, instead of in every round.
    context.set_forkserver_preload(["analysis.measure.round", *(["torch"] if needs_torch else [])])
    with _telemetry(plan, host, context):
        while missing := _missing(plan):
            for number in missing:
                job = _job(plan, runnable, run, number, host)
                record = _run_one(job, plan, host, context)
                record_file(plan, number).write_text(json.dumps(asdict(record)))
                done = f"round {number + 1} of {plan.grid.rounds} done"
                print(f"{plan.study.name}: {done}", flush=True)
            discard_disturbed(plan)


def _job(plan: Plan, runnable: Sequence[Variant], run: str, number: int, host: Host) -> RoundJob:
    return RoundJob(
        study_file=plan.study.folder / "study.yaml",
        variants=tuple(variant.name for variant in runnable),
        grid=plan.grid.name,
        samples=plan.grid.samples,
        sample_budget_s=plan.grid.sample_budget_s,
        run=run,
        number=number,
        modules=host.modules,
        gpu_uuid=host.gpu.uuid if host.gpu else None,
        out=round_file(plan, number),
    )


def _missing(plan: Plan) -> list[int]:
    return [n for n in range(plan.grid.rounds) if not round_file(plan, n).exists()]


def repeated(plan: Plan) -> list[dict[str, Any]]:
    """The rounds that were discarded because something disturbed them: `round` and `why`."""
    path = repeats_file(plan)
    return json.loads(path.read_text()) if path.exists() else []


def disturbed(plan: Plan) -> list[dict[str, Any]]:
    """The rounds of the journal that something disturbed: `round` and `why`."""
    numbers = [n for n in range(plan.grid.rounds) if round_file(plan, n).exists()]
    watched = [_watch(plan, number) for number in numbers]
    reasons = disturbances(watched, psutil.cpu_count() or 1)
    return [{"round": n, "why": why} for n, why in zip(numbers, reasons, strict=True) if why]


def _watch(plan: Plan, number: int) -> Watch:
    record = RoundRecord(**json.loads(record_file(plan, number).read_text()))
    throttle = {
        reason
        for sample in read_samples(round_file(plan, number))
        for reason in sample.throttle.split("|")
    }
    return Watch(record.conditions, record.after, record.seconds, record.newcomers, throttle)


def discard_disturbed(plan: Plan) -> None:
    """Delete disturbed rounds, so that they are measured again, and note why.

    Fewer repeats than half of the rounds: where more are disturbed, another try is no better.
    """
    before = repeated(plan)
    for entry in disturbed(plan)[: (plan.grid.rounds - 1) // 2 - len(before)]:
        before.append(entry)
        repeats_file(plan).write_text(json.dumps(before))
        number = entry["round"]
        round_file(plan, number).unlink()
        why = "; ".join(entry["why"])
        print(f"{plan.study.name}: round {number + 1} is repeated: {why}", flush=True)


def _run_one(job: RoundJob, plan: Plan, host: Host, context: ForkServerContext) -> RoundRecord:
    for left_over in (job.failure, job.progress):
        left_over.unlink(missing_ok=True)
    before = asdict(conditions())
    energy = host.gpu.energy_j() if host.gpu else None
    start = utc_now()
    process = context.Process(target=run_round, args=(job,))
    process.start()
    process.join(host.round_limit_s)
    if process.is_alive():
        process.kill()
        process.join()
        raise _round_error(job, plan, f"took longer than {host.round_limit_s:g} s (round_limit_s)")
    if process.exitcode != 0 or not job.out.exists():
        message = job.failure.read_text() if job.failure.exists() else ""
        raise _round_error(job, plan, message or f"its process ended with code {process.exitcode}")
    end = utc_now()
    after = host.gpu.energy_j() if host.gpu else None
    spent = after - energy if after is not None and energy is not None else None
    others = set(host.gpu.other_processes()) if host.gpu else set()
    newcomers = sorted(others - {*host.others, process.pid})
    return RoundRecord(start, end, spent, before, asdict(conditions()), newcomers)


def _round_error(job: RoundJob, plan: Plan, what: str) -> HotpathError:
    cell = job.progress.read_text() if job.progress.exists() else "before its first cell"
    kept = sum(round_file(plan, n).exists() for n in range(plan.grid.rounds))
    return HotpathError(
        f"{plan.study.name}: round {job.number + 1}: {cell}: {what}; "
        f"finished rounds kept: {kept}; the same command resumes from there"
    )


@contextmanager
def _telemetry(plan: Plan, host: Host, context: ForkServerContext) -> Iterator[None]:
    if host.gpu is None or not plan.study.telemetry:
        yield
        return
    from analysis.measure.telemetry import record

    stop = context.Event()
    process = context.Process(
        target=record, args=(host.gpu.uuid, telemetry_file(plan), stop), daemon=True
    )
    process.start()
    try:
        yield
    finally:
        stop.set()
        process.join()


def discard_journal(plan: Plan) -> None:
    shutil.rmtree(plan.journal)
