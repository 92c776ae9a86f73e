"""The rounds of one run: one supervised process each, whose samples are kept when it finishes."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

import psutil

from analysis.base import keys
from analysis.base.errors import HotpathError
from analysis.base.gpu import Gpu
from analysis.base.processes import killed
from analysis.base.reading import read_json
from analysis.measure import telemetry
from analysis.measure.clock import utc_now
from analysis.measure.conditions import conditions
from analysis.measure.journal import Journal, RoundRecord, digest_of
from analysis.measure.plan import StudyError
from analysis.measure.round import DUMP_STACKS, RoundJob, RoundReport, run_round
from analysis.results.disturbance import Watch, disturbances, reasons
from analysis.results.store.keys import Disturbance, Look
from analysis.results.store.samples import read_rows
from analysis.study import Study, Variant
from analysis.toolchain.compilers import Toolchain

ROUND_MODULES = (
    *("analysis.measure.round", "analysis.measure.nvbench"),
    *("analysis.api.measure", "analysis.api.memory"),
)
"""Modules that every round imports."""

DUMP_S = 0.3
"""Time for a round's process to write the stacks of its threads before it is killed."""

TELEMETRY_S = 5.0
"""Time for the telemetry's process to end; it then waits for a GPU that no longer answers."""


@dataclass(frozen=True)
class Host:
    """What a run needs to know of this host: compilers, built modules, the time limit of a round,
    the command that asks for it, and the other users of its GPUs."""

    toolchain: Toolchain
    arch: str
    modules: Path
    round_limit_s: float
    command: str = ""
    others: Sequence[int] = ()


@dataclass(frozen=True)
class Ahead:
    """What a command measures besides a run, for its progress: the run's place among the studies,
    and the expected seconds of those after it."""

    place: int = 1
    places: int = 1
    later_s: float = 0.0

    def line(self, journal: Journal, number: int) -> str:
        """The line before round `number`; the budgets of studies give the time that is left."""
        plan = journal.plan
        rounds = plan.grid.rounds
        of_studies = f"study {self.place} of {self.places}, " if self.places > 1 else ""
        seconds = len(journal.missing()) * plan.budget_s / rounds + self.later_s
        left = f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"
        return f"{plan.study.name}: {of_studies}round {number + 1} of {rounds}, about {left} left"


def run_rounds(journal: Journal, host: Host, ahead: Ahead = Ahead()) -> None:
    """Run the rounds that are missing from the journal, and repeat disturbed ones.

    StudyError names the cell if a round fails or takes too long; HotpathError, if nothing more can
    be measured. Finished rounds are kept.
    """
    if not journal.plan.runnable or not journal.missing():
        return
    journal.folder.mkdir(parents=True, exist_ok=True)
    look = conditions()
    faults: dict[tuple[str, str], str] = {}
    with _telemetry(journal):
        while missing := journal.missing():
            for number in missing:
                print(ahead.line(journal, number), flush=True)
                look = _run_one(journal, number, host, look, faults)
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


def job_of(
    journal: Journal, number: int, host: Host, faults: Mapping[tuple[str, str], str] = {}
) -> RoundJob:
    """The input of the process of a round that starts now."""
    plan = journal.plan
    cases = {v.name: tuple(case.id for case in v.in_grid(plan.grid.name)) for v in plan.runnable}
    return RoundJob(
        study=plan.study,
        cases=cases,
        samples=plan.grid.samples,
        sample_budget_s=plan.grid.sample_budget_s,
        run=journal.run,
        number=number,
        modules=host.modules,
        gpu_keys=tuple(gpu.key for gpu in plan.gpus),
        out=journal.round_file(number),
        faults=dict(faults),
    )


def _run_one(
    journal: Journal,
    number: int,
    host: Host,
    before: Look,
    faults: dict[tuple[str, str], str],
) -> Look:
    """Run a round in a process and keep its samples; returns the conditions after it.

    If a shipped operator ends or stops the process, its cell is added to `faults`, and the round
    starts again without it.
    """
    gpus = journal.plan.gpus
    journal.clear(number)
    energy = _energy_j(gpus)
    start, started = utc_now(), time.monotonic()
    job = job_of(journal, number, host, faults)
    process = multiprocessing.get_context("forkserver").Process(target=run_round, args=(job,))
    process.start()
    why = "interrupted"
    try:
        process.join(host.round_limit_s)
        why = f"took longer than {host.round_limit_s:g} s (round_limit_s)"
    finally:  # also where this process is interrupted
        if is_late := process.is_alive():
            _end(process, job, journal, why)
    if is_late:
        if _is_fault_of_shipped(job, why, faults):
            return _run_one(journal, number, host, conditions(), faults)
        raise StudyError(_report(job, journal, why))
    if process.exitcode == os.EX_IOERR:
        why = f"nothing can be written to {job.out.parent}; make room"
        raise HotpathError(_report(job, journal, why))
    if process.exitcode != 0 or not job.out.exists():
        why = job.text("failure") or f"its process ended with code {process.exitcode}"
        if _is_fault_of_shipped(job, why, faults):
            return _run_one(journal, number, host, conditions(), faults)
        raise StudyError(_report(job, journal, why))
    end, seconds, spent = utc_now(), time.monotonic() - started, _energy_j(gpus)
    read_rows(job.out)  # HotpathError for a value that no result may have
    path = job.file("report.json")
    report = keys.read(RoundReport, read_json(path), str(path))
    others = {process for gpu in gpus for process in gpu.other_processes() or ()}
    record = RoundRecord(
        **dict(report),
        round=number,
        start=start,
        end=end,
        seconds=seconds,
        energy_j=spent - energy if spent is not None and energy is not None else None,
        before=before,
        after=conditions(),
        newcomers=sorted(others - {*host.others, process.pid}),
        samples_sha256=digest_of(job.out),
    )
    journal.finish(record)
    return record.after


def _is_fault_of_shipped(job: RoundJob, why: str, faults: dict[tuple[str, str], str]) -> bool:
    """Whether the round ended at a cell of a shipped operator, which is then among `faults`."""
    *_, name, case = ["", "", *job.text("cell").split()]
    if (name, case) in faults or all(
        one.name != name or one.role != "shipped" for one in job.study.variants
    ):
        return False
    faults[name, case] = why
    print(f"{job.where}: {why}; the round starts again without it", file=sys.stderr, flush=True)
    return True


def _end(process: BaseProcess, job: RoundJob, journal: Journal, why: str) -> None:
    """Have the round's process write its stacks, then kill it.

    HotpathError if it cannot be ended.
    """
    print(f"{job.where}: {why}", file=sys.stderr, flush=True)
    if process.pid is not None and job.file("cell").exists():  # then it handles the signal
        with suppress(ProcessLookupError):
            os.kill(process.pid, DUMP_STACKS)
        process.join(DUMP_S)
    if not killed(process):
        what = f"{why}; its process {process.pid} cannot be ended, and the GPU may need attention"
        raise HotpathError(_report(job, journal, what))


def _report(job: RoundJob, journal: Journal, why: str) -> str:
    """The line about a round that did not finish."""
    kept = len(journal.records)
    return f"{job.where}: {why}; finished rounds kept: {kept}; the same command resumes from there"


def _energy_j(gpus: Sequence[Gpu]) -> float | None:
    """Joules of all GPUs in use since the driver was loaded; None if one does not report them."""
    energies = [gpu.energy_j() for gpu in gpus]
    known = [energy for energy in energies if energy is not None]
    return sum(known) if known and len(known) == len(energies) else None


def disturbed(journal: Journal) -> list[Disturbance]:
    """The rounds of the journal that something disturbed."""
    watched = [
        Watch(
            record.before.model_dump(),
            record.after.model_dump(),
            record.seconds,
            record.newcomers,
            reasons(row.throttle for row in read_rows(journal.round_file(record.round))),
        )
        for record in journal.records
    ]
    found = zip(journal.records, disturbances(watched, psutil.cpu_count() or 1), strict=True)
    return [Disturbance(round=record.round, why=why) for record, why in found if why]


def discard_disturbed(journal: Journal) -> None:
    """Discard disturbed rounds, so that they are measured again.

    Fewer repeats than half of the rounds: where more are disturbed, another try is no better.
    """
    repeats = (journal.plan.grid.rounds - 1) // 2 - len(journal.begun.repeated)
    for entry in disturbed(journal)[: max(repeats, 0)]:
        journal.repeat(entry.round, entry.why)
        why = "; ".join(entry.why)
        name = journal.plan.study.name
        print(f"{name}: round {entry.round + 1} is repeated: {why}", flush=True)


@contextmanager
def _telemetry(journal: Journal) -> Iterator[None]:
    """Record telemetry meanwhile, if the study has some."""
    plan = journal.plan
    if not plan.gpus or not plan.study.telemetry:
        yield
        return
    context = multiprocessing.get_context("forkserver")
    stop, stopping = context.Pipe(duplex=False)
    gpu_keys = [gpu.key for gpu in plan.gpus]
    process = context.Process(
        target=telemetry.record, args=(gpu_keys, journal.telemetry_file, stop), daemon=True
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
