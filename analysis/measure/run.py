"""The rounds of one run: one supervised process each, whose samples are kept when it finishes."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

import psutil

from analysis.base import keys
from analysis.base.errors import HotpathError
from analysis.base.files import remove
from analysis.base.gpu import Gpu
from analysis.base.processes import killed
from analysis.base.reading import read_json
from analysis.measure.clock import utc_now
from analysis.measure.conditions import Conditions, conditions, recent_conditions
from analysis.measure.journal import Journal, RoundRecord, digest_of
from analysis.measure.needs import Provision
from analysis.measure.plan import Plan, StudyError
from analysis.measure.progress import Progress, expected
from analysis.measure.round import DUMP_STACKS, RoundJob, run_round
from analysis.results.disturbance import Watch, disturbances, reasons
from analysis.results.store.keys import Disturbance, Look, Stages
from analysis.results.store.samples import read_rows, write_rows
from analysis.study import Study, Variant
from analysis.toolchain.compilers import Toolchain

ROUND_MODULES = (
    *("analysis.measure.round", "analysis.measure.nvbench"),
    *("analysis.api.measure", "analysis.api.memory"),
)
"""Modules that every round imports."""

BEFORE_CELLS = "before its first cell"

DUMP_S = 0.3
"""Time for a round's process to write the stacks of its threads before it is killed."""

TELEMETRY_S = 5.0
"""Time for the telemetry's process to end; it then waits for a GPU that no longer answers."""


@dataclass(frozen=True)
class Host:
    """Where a run happens: the GPUs in use, their other users, compilers, built modules, the time
    limit of a round, and the command that asks for it."""

    gpus: Sequence[Gpu]
    others: list[int]
    toolchain: Toolchain
    arch: str
    modules: Path
    round_limit_s: float
    command: str = ""


def run_rounds(
    plan: Plan, provision: Provision, host: Host, progress: Progress | None = None
) -> None:
    """Run the rounds of `plan` that are missing from its journal, and repeat disturbed ones.

    StudyError names the cell if a round fails or takes too long; HotpathError, if nothing more can
    be measured. Finished rounds are kept.
    """
    runnable = [variant for variant in plan.variants if provision.unmet(variant) is None]
    journal = Journal(plan)
    if not runnable or not journal.missing():
        return
    journal.begin()
    context = multiprocessing.get_context("forkserver")
    import_once(imported(plan.study, runnable))
    progress = progress or expected([plan], [provision])[0]
    with _telemetry(plan, journal, host, context):
        while missing := journal.missing():
            for number in missing:
                print(progress.line(plan, number, len(journal.missing())), flush=True)
                _run_one(_job(plan, runnable, journal, number, host), journal, host, context)
            discard_disturbed(journal)


def import_once(modules: Sequence[str]) -> None:
    """Import these modules and those of every round once, before any use of a GPU, instead of in
    every round.

    Only the first call counts: the fork server lasts as long as this process. It leaves out what is
    not installed.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*ROUND_MODULES, *modules])


def imported(study: Study, runnable: Sequence[Variant]) -> list[str]:
    """Modules that the rounds of a study import, as far as importing them takes long."""
    needed = {"torch"} & {need for variant in runnable for need in variant.needs}
    return sorted({*needed, *study.imports})


def _job(
    plan: Plan, runnable: Sequence[Variant], journal: Journal, number: int, host: Host
) -> RoundJob:
    return RoundJob(
        study=plan.study,
        cases={v.name: tuple(case.id for case in v.in_grid(plan.grid.name)) for v in runnable},
        samples=plan.grid.samples,
        sample_budget_s=plan.grid.sample_budget_s,
        run=journal.run,
        number=number,
        modules=host.modules,
        gpu_keys=tuple(gpu.key for gpu in host.gpus),
        out=journal.round_file(number),
    )


def disturbed(journal: Journal) -> list[Disturbance]:
    """The rounds of the journal that something disturbed."""
    numbers = sorted(journal.records)
    watched = [_watch(journal, number) for number in numbers]
    found = disturbances(watched, psutil.cpu_count() or 1)
    return [Disturbance(round=n, why=why) for n, why in zip(numbers, found, strict=True) if why]


def _watch(journal: Journal, number: int) -> Watch:
    record = journal.records[number]
    throttle = reasons(row.throttle for row in read_rows(journal.round_file(number)))
    before, after = record.conditions.model_dump(), record.after.model_dump()
    return Watch(before, after, record.seconds, record.newcomers, throttle)


def discard_disturbed(journal: Journal) -> None:
    """Discard disturbed rounds, so that they are measured again.

    Fewer repeats than half of the rounds: where more are disturbed, another try is no better.
    """
    repeats = (journal.rounds - 1) // 2 - len(journal.repeated)
    for entry in disturbed(journal)[:repeats]:
        journal.repeat(entry.round, entry.why)
        why = "; ".join(entry.why)
        print(f"{journal.study}: round {entry.round + 1} is repeated: {why}", flush=True)


def _run_one(job: RoundJob, journal: Journal, host: Host, context: ForkServerContext) -> None:
    for left_over in (job.file("failure"), job.file("cell"), job.out):
        remove(left_over)
    before = recent_conditions()
    if not job.cells():
        _finish_without_cells(job, journal, before)
        return
    energy = _energy_j(host)
    start, started = utc_now(), time.monotonic()
    process = context.Process(target=run_round, args=(replace(job, started_s=started),))
    process.start()
    late = ""
    try:
        limit_s = host.round_limit_s
        process.join(limit_s)
        late = f"took longer than {limit_s:g} s (round_limit_s)"
    finally:  # also where this process is interrupted
        if is_late := process.is_alive():
            _end(process, job, journal, late or "interrupted")
    if is_late:
        raise StudyError(_report(job, journal, late))
    if process.exitcode != 0 or not job.out.exists():
        kind = HotpathError if process.exitcode == os.EX_IOERR else StudyError
        raise kind(_report(job, journal, _why(job, process.exitcode)))
    end, seconds = utc_now(), time.monotonic() - started
    read_rows(job.out)  # HotpathError for a value that no result may have
    stages = job.file("stages")
    spent = _energy_j(host)
    others = {process for gpu in host.gpus for process in gpu.other_processes() or ()}
    record = RoundRecord(
        start=start,
        end=end,
        seconds=seconds,
        energy_j=spent - energy if spent is not None and energy is not None else None,
        conditions=Look(**asdict(before)),
        after=Look(**asdict(conditions())),
        newcomers=sorted(others - {*host.others, process.pid}),
        stages_s=keys.read(Stages, read_json(stages), str(stages)),
        samples_sha256=digest_of(job.out),
    )
    journal.finish(job.number, record)


def _finish_without_cells(job: RoundJob, journal: Journal, conditions: Conditions) -> None:
    """Record a round that has nothing to measure; starts no process."""
    write_rows(job.out, [])
    now, look = utc_now(), Look(**asdict(conditions))
    record = RoundRecord(
        start=now,
        end=now,
        seconds=0.0,
        energy_j=0.0,
        conditions=look,
        after=look,
        newcomers=[],
        stages_s=Stages(**dict.fromkeys(Stages.model_fields, 0.0)),
        samples_sha256=digest_of(job.out),
    )
    journal.finish(job.number, record)


def _end(process: BaseProcess, job: RoundJob, journal: Journal, why: str) -> None:
    """Have the round's process write its stacks, then kill it.

    HotpathError if it cannot be ended.
    """
    cell = job.text("cell") or BEFORE_CELLS
    print(f"{journal.study}: round {job.number + 1}: {cell}: {why}", file=sys.stderr, flush=True)
    if process.pid is not None and job.file("cell").exists():  # then it handles the signal
        with suppress(ProcessLookupError):
            os.kill(process.pid, DUMP_STACKS)
        process.join(DUMP_S)
    if not killed(process):
        what = f"{why}; its process {process.pid} cannot be ended, and the GPU may need attention"
        raise HotpathError(_report(job, journal, what))


def _energy_j(host: Host) -> float | None:
    """Joules of all GPUs in use since the driver was loaded; None if one does not report them."""
    energies = [gpu.energy_j() for gpu in host.gpus]
    known = [energy for energy in energies if energy is not None]
    return sum(known) if known and len(known) == len(energies) else None


def _why(job: RoundJob, code: int | None) -> str:
    """Why the process of a round ended early."""
    if code == os.EX_IOERR:
        return f"nothing can be written to {job.out.parent}; make room"
    return job.text("failure") or f"its process ended with code {code}"


def _report(job: RoundJob, journal: Journal, what: str) -> str:
    """The line about a round that did not finish."""
    cell = job.text("cell") or BEFORE_CELLS
    return (
        f"{journal.study}: round {job.number + 1}: {cell}: {what}; "
        f"finished rounds kept: {len(journal.records)}; the same command resumes from there"
    )


@contextmanager
def _telemetry(
    plan: Plan, journal: Journal, host: Host, context: ForkServerContext
) -> Iterator[None]:
    if not host.gpus or not plan.study.telemetry:
        yield
        return
    from analysis.measure.telemetry import record

    stop, stopping = context.Pipe(duplex=False)
    process = context.Process(
        target=record,
        args=([gpu.key for gpu in host.gpus], journal.telemetry_file, stop),
        daemon=True,
    )
    process.start()
    stop.close()
    try:
        yield
    finally:
        stopping.close()
        process.join(TELEMETRY_S)
        if process.is_alive():
            killed(process)
