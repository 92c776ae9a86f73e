"""The rounds of one run: one supervised process each, whose samples are kept when it finishes."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import psutil

from analysis.base.errors import HotpathError
from analysis.base.gpu import Gpu
from analysis.base.processes import killed
from analysis.base.records import records_text
from analysis.measure.cpu import conditions
from analysis.measure.journal import Host, Journal, RoundRecord
from analysis.measure.machine import utc_now
from analysis.measure.plan import Plan, StudyError
from analysis.measure.round import RoundJob, Visit, run_round
from analysis.measure.telemetry import readings_of, recording
from analysis.results.disturbance import disturbances, reasons
from analysis.results.store.keys import Look, Stages
from analysis.results.store.records import Reading

ROUND_MODULES: Final = (
    *("analysis.measure.round", "analysis.measure.nvbench"),
    *("analysis.api.measure", "analysis.api.memory"),
)
"""Modules that every round imports."""
LOOK_S: Final = 0.5
"""Time between two looks whether the process of a round that sends nothing is alive."""
DUMP_S: Final = 0.3
"""Time beyond its limit for a round's process to write the stacks of its threads."""


class RoundError(StudyError):
    """A round that failed: the variant and case of its last cell, and why."""

    def __init__(self, text: str, cell: tuple[str, str], why: str) -> None:
        super().__init__(text)
        self.cell, self.why = cell, why


def import_once(plans: Sequence[Plan]) -> None:
    """Import the slow modules of these rounds once, before any use of a GPU, instead of in every
    round. Only a process's first call counts; modules that are not installed are left out."""
    names = {name for plan in plans for name in plan.study.imports}
    needs = {need for plan in plans for variant in plan.runnable for need in variant.needs}
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*ROUND_MODULES, *sorted(names | {"torch"} & needs)])


def run_rounds(journal: Journal, host: Host, of_studies: str = "", later_s: float = 0.0) -> None:
    """Run the rounds that are missing from the journal, and repeat disturbed ones. The line before
    each names its place `of_studies`, and the time that is left, with the `later_s` of others.

    StudyError if a round fails or takes too long; HotpathError if nothing more can be measured.
    """
    plan, rounds = journal.plan, journal.plan.grid.rounds
    if not plan.runnable:
        return
    journal.folder.mkdir(parents=True, exist_ok=True)
    look, faults = conditions(), dict[tuple[str, str], str]()
    while numbers := journal.to_measure():
        for place, number in enumerate(numbers):
            left_s = (len(numbers) - place) * plan.budget_s / rounds + later_s
            left = f"{left_s / 60:.0f} min" if left_s >= 60 else f"{left_s:.0f} s"
            old = journal.records.get(number)
            again = f"; it is repeated: {'; '.join(old.why)}" if old else ""
            of = f"{of_studies}round {number + 1} of {rounds}, about {left} left{again}"
            print(f"{plan.study.name}: {of}", flush=True)
            look = _run_one(journal, number, host, look, faults)


def _run_one(
    journal: Journal, number: int, host: Host, before: Look, faults: dict[tuple[str, str], str]
) -> Look:
    """Run a round in a process and keep its samples; returns the conditions after it.

    If a shipped operator ends or stops the process, its cell is added to `faults`, and the round
    starts again without it; after a second cell with the same reason, without any of its cells.
    """
    plan = journal.plan
    energy, started = _energy_j(plan.gpus), time.monotonic()
    job = RoundJob(
        study=plan.study,
        variants=plan.runnable,
        grid=plan.grid,
        run=journal.begun.run,
        number=number,
        modules=host.modules,
        gpu_keys=[gpu.key for gpu in plan.gpus],
        out=journal.folder / "round",
        faults=faults,
    )
    try:
        with recording(plan.gpus if plan.study.telemetry else ()) as answers:
            visits, samples, stages, pid = _supervise(job, host.round_limit_s)
    except RoundError as error:
        shipped = {variant.name for variant in plan.runnable if variant.role == "shipped"}
        if error.cell in faults or error.cell[0] not in shipped:
            raise
        variant = plan.study.variant(error.cell[0])
        cases = [case.id for case in variant.cases]
        again = error.why in [faults.get((variant.name, case)) for case in cases]
        failed = cases if again else [error.cell[1]]
        faults.update({(variant.name, case): error.why for case in failed})
        without = variant.name if again else "this cell"
        print(f"{error}; the round starts again without {without}", file=sys.stderr)
        return _run_one(journal, number, host, conditions(), faults)
    end, seconds, spent = utc_now(), time.monotonic() - started, _energy_j(plan.gpus)
    others = {process for gpu in plan.gpus for process in gpu.other_processes() or ()}
    newcomers, cores, after = others - {*host.others, pid}, psutil.cpu_count() or 1, conditions()
    old = journal.records.get(number)
    record = RoundRecord(
        begun=journal.begun,
        round=number,
        repeated=[*old.repeated, old.why] if old else [],
        why=[],
        end=end,
        energy_j=None if energy is None or spent is None else spent - energy,
        before=before,
        after=after,
        stages_s=stages,
        samples=samples,
        telemetry=records_text(Reading, readings_of([*answers], visits, number), ".12g"),
    )
    throttle = reasons(row.throttle for row in record.content()[0])
    record.why = [*disturbances(before, after, seconds, cores, newcomers, throttle)]
    journal.finish(record)
    return after


def _supervise(job: RoundJob, limit_s: float) -> tuple[list[Visit], str, Stages, int | None]:
    """Run a round in a process: its visits, samples, stages and the id of its process.
    RoundError if it fails; HotpathError if the disk is full or the process cannot be ended."""
    context = multiprocessing.get_context("forkserver")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=run_round, args=(job, sender, limit_s))
    until = time.monotonic() + limit_s + DUMP_S
    process.start()
    sender.close()
    visits, last = list[Visit](), None
    try:
        with suppress(EOFError, OSError):  # the process has ended, maybe within a message
            # A process that the round has forked may hold the other end of the pipe.
            while (process.is_alive() or receiver.poll()) and time.monotonic() < until:
                if receiver.poll(LOOK_S):
                    last = receiver.recv()
                    if isinstance(last, Visit):
                        visits.append(last)
        process.join(max(0.0, until - time.monotonic()))
    finally:  # also where this process is interrupted
        receiver.close()
        is_late, has_ended = process.is_alive(), killed(process)
    if not is_late and process.exitcode == 0 and isinstance(last, tuple):
        return visits, *last, process.pid
    why = last if isinstance(last, str) else f"its process ended with code {process.exitcode}"
    if is_late:
        why = f"took longer than {limit_s:g} s (round_limit_s)"
    if not has_ended:
        why += f"; its process {process.pid} cannot be ended, the GPU may need attention"
    cell = (visits[-1].variant, visits[-1].case) if visits else ("", "")
    place = f"cell {len(visits)}: {' '.join(cell)}" if visits else "its start"
    text = f"{job.study.name}: round {job.number + 1}: {place}: {why}"
    text += "; finished rounds are kept, the same command resumes from there"
    if not has_ended or process.exitcode == os.EX_IOERR:
        raise HotpathError(text)
    raise RoundError(text, cell, why)


def _energy_j(gpus: Sequence[Gpu]) -> float | None:
    """Joules of all GPUs in use since the driver was loaded; None if one does not report them."""
    known = [energy for gpu in gpus if (energy := gpu.energy_j()) is not None]
    return sum(known) if known and len(known) == len(gpus) else None
