"""Print the fastest calls for moving pieces on a machine, with their cost.

    python -m kernels.transfers.advise --size 24KiB --count 4096
    python -m kernels.transfers.advise --size 16MiB --memory pageable --machine my-box
    python -m kernels.transfers.advise --export adviser.json --machine my-box
    python -m kernels.transfers.advise --calibrate --export adviser.json
    python -m kernels.transfers.advise --holdout 7 --out holdout.csv

A model of each way gives the time between the measured cells. The command refuses questions beyond
these, and lists in a pool that the GPU's translations do not cover, and names the nearest cell.
"""

from __future__ import annotations

import argparse
import math
import re
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from pathlib import Path
from typing import Final

from analysis.api.files import write_records
from analysis.api.measure import Trials, trials
from analysis.api.quantities import (
    digits,
    percent,
    quantity,
    quantity_interval,
    ratio,
    with_interval,
)
from analysis.api.study import (
    FieldError,
    HotpathError,
    Study,
    fail_in_one_line,
    find_study,
    load_config,
    program,
)
from analysis.api.tables import machines

from .adviser import (
    DIRECTIONS,
    LAYOUTS,
    SURE,
    Advice,
    Adviser,
    Job,
    certainty,
    read_adviser,
)
from .answers import answers, left_out, pool_refusal, refusal
from .chart_parts import binary
from .kinds import MEMORIES
from .measured import advisers_in
from .pools import read_pools
from .trial import HELD_OUT_S, Bench, HeldOut, Verdict, calibrate_here, hold_out, judge, pinned_ways

STUDY: Final = Path(__file__).parent.name
_UNITS: Final = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def of_machine(known: Sequence[Adviser], machine: str) -> list[Adviser]:
    """The adviser of `machine`, or those of all; FieldError for a machine without results."""
    names = [one.machine for one in known]
    if machine not in ("all", *names):
        raise FieldError("--machine", f"one of {names}", machine)
    return [one for one in known if machine in ("all", one.machine)]


def answer(adviser: Adviser, job: Job, memory: str) -> Iterable[str]:
    """The ways for the job, one line each and the fastest first, then a recommendation.

    HotpathError if no such way was measured on the machine, or none near the job.
    """
    advices = answers(adviser, job, memory)
    beyond = left_out(adviser, job, memory)
    if not advices and not beyond:
        raise HotpathError(f"{job}, {memory} memory: no such way was measured on {adviser.machine}")
    if not advices:
        raise HotpathError(refusal(adviser, job, memory))
    yield f"{adviser.machine}: {job}, {memory} memory"
    titles = {way.variant: way.title for way in adviser.ways}
    for one in advices:
        yield f"{one.variant:22} {_time(one)}, {digits(job.payload_bytes / one.seconds / 1e9)} GB/s"
        yield f"{'':22} {titles[one.variant]}; {'; '.join(_details(one))}"
    if beyond:
        yield f"not measured near such pieces: {', '.join(beyond)}"
    yield recommendation(advices)


def recommendation(advices: Sequence[Advice]) -> str:
    """The fastest way, and how surely it beats the second; `advices` is not empty."""
    best, *others = advices
    if not others:
        return f"use {best.variant}: no other measurements"
    second = others[0]
    faster = ratio(second.seconds / best.seconds)
    probability = certainty(best, second)
    surely = "surely" if probability >= SURE else "not surely"
    return (
        f"use {best.variant}: {faster} as fast as {second.variant},"
        f" {surely} faster (probability {percent(probability)})"
    )


def _time(one: Advice) -> str:
    interval = quantity_interval(one.seconds, one.low, one.high, "s")
    return with_interval(f"{quantity(one.seconds, 's'):>10}", interval)


def _details(one: Advice) -> Iterable[str]:
    if not math.isnan(one.submit_s):
        yield f"the call takes {quantity(one.submit_s, 's')}"
    if not math.isnan(one.cpu_s):
        yield f"all CPU threads {quantity(one.cpu_s, 's')}"
    if not math.isnan(one.gpu_s):
        yield f"the GPU {quantity(one.gpu_s, 's')}"
    yield "measured" if one.is_measured else "modelled"


def parse_size(text: str) -> int:
    """Parse bytes such as `4096`, `4KiB`, `16 MiB`. ArgumentTypeError otherwise."""
    found = re.fullmatch(r"([0-9]{1,15}) ?([KMG]iB|B|)", text)
    size = int(found[1]) * _UNITS[found[2]] if found else 0
    if size < 1:
        raise argparse.ArgumentTypeError(f"expected bytes such as 4096, 4KiB or 16MiB, got {text}")
    return size


def parse_pool(text: str) -> int:
    """Parse bytes with a unit, such as `188MiB`. ArgumentTypeError otherwise."""
    expected = "expected bytes with a unit such as 188 MiB or 40 GiB"
    if text.isdecimal():
        raise argparse.ArgumentTypeError(f"{expected}, got {text}")
    try:
        return parse_size(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"{expected}, got {text}") from None


def parse_count(text: str) -> int:
    if not re.fullmatch("[0-9]{1,15}", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text}")
    return int(text)


def command_line() -> argparse.ArgumentParser:
    parser = program("kernels.transfers.advise", __doc__)
    job = parser.add_argument_group("the job")
    job.add_argument("--size", type=parse_size, help="of a piece: 4096, 4KiB")
    job.add_argument("--count", type=parse_count, default=1, help="of pieces (1)")
    job.add_argument("--direction", choices=DIRECTIONS, default="h2d", help="(h2d)")
    for side in ("host", "device"):
        job.add_argument(
            f"--{side}",
            choices=LAYOUTS,
            default="scattered",
            help=f"layout on the {side} (scattered)",
        )
    job.add_argument(
        "--pool",
        type=parse_pool,
        help="host memory that scattered pieces lie in, such as 40GiB (as large as the pieces)",
    )
    job.add_argument(
        "--alignment",
        type=parse_size,
        default=0,
        help="bytes on which all pieces start and end, a power of two (that of the size)",
    )
    job.add_argument(
        "--busy", dest="is_busy", action="store_true", help="the stream has unfinished work"
    )
    job.add_argument("--memory", choices=["any", *MEMORIES], default="pinned", help="(pinned)")
    source = parser.add_argument_group("the machine")
    source.add_argument("--machine", default="all", help="name of a machine in the results (all)")
    source.add_argument("--results", type=Path, help="folder of the machines' results")
    source.add_argument("--table", type=Path, help="file by --export, instead of results")
    source.add_argument("--calibrate", action="store_true", help="measure this machine, in 10 s")
    parser.add_argument("--export", type=Path, metavar="FILE", help="write the adviser as JSON")
    parser.add_argument(
        "--holdout",
        type=int,
        metavar="SEED",
        help="measure cells drawn by SEED, and judge the advice",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="of the held-out cells, as CSV")
    return parser


def main() -> None:
    arguments = command_line().parse_args()
    study = find_study(STUDY)
    if arguments.holdout is not None:
        held_out(study, arguments)
        return
    if not arguments.size and not arguments.export:
        raise FieldError("--size", "bytes such as 4096, 4KiB or 16MiB", None)
    known = _known(study, arguments)
    if arguments.export:
        if len(known) > 1:
            names = [one.machine for one in known]
            raise FieldError("--machine", f"one of {names} to export", arguments.machine)
        known[0].write(arguments.export)
    if arguments.size:
        job = Job(**{field.name: getattr(arguments, field.name) for field in fields(Job)})
        if arguments.pool is not None:
            require_pool([one.machine for one in known], job, arguments.pool, _results(arguments))
        for adviser in known:
            print(*answer(adviser, job, arguments.memory), sep="\n")


def require_pool(machines: Sequence[str], job: Job, pool: int, results: Path) -> None:
    """FieldError if the pool is smaller than the pieces, HotpathError if lists from it were not
    measured."""
    if job.host == "scattered" and pool < job.payload_bytes:
        raise FieldError("--pool", f"at least {binary(job.payload_bytes)}", binary(pool))
    pools = read_pools(results, find_study(STUDY))
    for machine in machines:
        if refused := pool_refusal(machine, pools, job, pool):
            raise HotpathError(refused)


def _results(arguments: argparse.Namespace) -> Path:
    return arguments.results or load_config({}).results


def _known(study: Study, arguments: argparse.Namespace) -> list[Adviser]:
    if arguments.table:
        return [read_adviser(arguments.table)]
    if arguments.calibrate:
        with _trials(study) as here:
            bench = Bench(here.bind)
            calibrated = calibrate_here(here, bench)
            bench.require_right()
            return [calibrated]
    results = _results(arguments)
    measured = [name for name in machines(results) if (results / name / study.name).is_dir()]
    if arguments.machine not in ("all", *measured):  # known at once; the rest takes seconds
        raise FieldError("--machine", f"one of {measured}", arguments.machine)
    return of_machine(advisers_in(results, study), arguments.machine)


def held_out(study: Study, arguments: argparse.Namespace) -> None:
    """Calibrate, measure cells drawn by the seed, print the verdicts and write the rows.

    The advice from results is judged too if this machine has any.
    """
    with _trials(study) as here:
        started = time.perf_counter()
        bench = Bench(here.bind)
        calibrated = calibrate_here(here, bench)
        print(f"calibrated in {quantity(time.perf_counter() - started, 's')}", flush=True)
        if arguments.export:
            calibrated.write(arguments.export)
        rows = hold_out(here, bench, arguments.holdout, calibrated, HELD_OUT_S, arguments.results)
    if arguments.out:
        write_records(arguments.out, HeldOut, rows)
    for verdict in judge(rows):
        print(_in_words(verdict))
    bench.require_right()


def _in_words(verdict: Verdict) -> str:
    losses = verdict.losses
    text = (
        f"{verdict.source}: within 5 % of the fastest way in"
        f" {percent(verdict.share_of_losses(0.05))} of {len(losses)} cells,"
        f" within 20 % in {percent(verdict.share_of_losses(0.2))}, worst {ratio(max(losses))}"
    )
    if verdict.errors:
        text += f"; predicted within 10 % in {percent(verdict.share_of_errors(0.1))}"
    return text


def _trials(study: Study) -> AbstractContextManager[Trials]:
    return trials(study, pinned_ways(study), load_config({}), "calibrating the adviser")


if __name__ == "__main__":
    fail_in_one_line(main)
