"""Print which call moves pieces fastest on a machine, from committed results.

    python -m kernels.transfers.advise --size 24KiB --count 1024
    python -m kernels.transfers.advise --size 16MiB --memory pageable --machine my-box
    python -m kernels.transfers.advise --export answers.json --machine my-box

The answer is the simplest call within 5 % of the fastest, in the measured cell or between its
neighbours. Without such cells, the command says so and names the nearest one.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from analysis.api.files import write_whole
from analysis.api.study import (
    FieldError,
    HotpathError,
    fail_in_one_line,
    find_study,
    load_config,
    program,
)
from analysis.api.tables import fresh_rows, link_rates, machines

from .answering import ANY, LAYOUTS, Measured, Place, as_file, measured
from .chart_parts import binary
from .kinds import MEMORIES
from .measured import DIRECTIONS
from .pools import read_pools

STUDY: Final = Path(__file__).parent.name
_UNITS: Final = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def lines(here: Measured, size: int, count: int) -> Iterator[str]:
    """The answer, and a line for every way measured in the same cells, the fastest first.

    HotpathError without an answer.
    """
    found = here.answer(size, count)
    if found is None:
        raise HotpathError(f"{here.place.machine}, {here.place}: {here.refusal(size, count)}")
    yield f"{here.place.machine}: {count} pieces of {size} B, {here.place}"
    yield from here.in_words(found)
    for way in found.seconds:
        _, time, rate, returns, over = here.row(found, way)
        caller = f", the call returns after {returns}" if returns else ""
        yield f"  {way:22} {over:>7}  {time}, {rate}{caller}"


def parse_size(text: str) -> int:
    """Parse bytes such as `4096`, `4KiB`, `16 MiB`. ArgumentTypeError otherwise."""
    found = re.fullmatch(r"([0-9]{1,15}) ?([KMG]iB|B|)", text)
    size = int(found[1]) * _UNITS[found[2]] if found else 0
    if size < 1:
        raise argparse.ArgumentTypeError(f"expected bytes such as 4096, 4KiB or 16MiB, got {text}")
    return size


def parse_pool(text: str) -> int:
    """Parse bytes with a unit, such as `188MiB`. ArgumentTypeError otherwise."""
    if text.isdecimal():
        expected = "expected bytes with a unit such as 188 MiB or 40 GiB"
        raise argparse.ArgumentTypeError(f"{expected}, got {text}")
    return parse_size(text)


def parse_count(text: str) -> int:
    if not re.fullmatch("[0-9]{1,15}", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text}")
    return int(text)


def command_line() -> argparse.ArgumentParser:
    parser = program("kernels.transfers.advise", __doc__)
    parser.add_argument("--size", type=parse_size, help="of a piece: 4096, 4KiB")
    parser.add_argument("--count", type=parse_count, default=1, help="of pieces (1)")
    parser.add_argument("--direction", choices=DIRECTIONS, default="h2d", help="(h2d)")
    for side in ("host", "device"):
        parser.add_argument(
            f"--{side}", choices=LAYOUTS, default="scattered", help="layout there (scattered)"
        )
    parser.add_argument("--pool", type=parse_pool, help="host memory that scattered pieces lie in")
    parser.add_argument("--busy", action="store_true", help="the stream has unfinished work")
    parser.add_argument("--memory", choices=[ANY, *MEMORIES], default="pinned", help="(pinned)")
    parser.add_argument("--machine", default="all", help="name of a machine in the results (all)")
    parser.add_argument("--results", type=Path, help="folder of the machines' results")
    parser.add_argument("--export", type=Path, metavar="FILE", help="write all answers as JSON")
    return parser


def main() -> None:
    arguments = command_line().parse_args()
    if not arguments.size and not arguments.export:
        raise FieldError("--size", "bytes such as 4096, 4KiB or 16MiB", None)
    study = find_study(STUDY)
    assert study.limit is not None
    results = arguments.results or load_config({}).results
    known = [name for name in machines(results) if (results / name / study.name).is_dir()]
    if arguments.machine not in ("all", *known):
        raise FieldError("--machine", f"one of {known}", arguments.machine)
    found = measured(study, fresh_rows(results, study), link_rates(results, study.limit))
    wanted = known if arguments.machine == "all" else [arguments.machine]
    names = [name for name in wanted if name in {place.machine for place in found}]
    if not names:
        raise HotpathError(f"{study.name}: no fresh results on {arguments.machine}")
    if arguments.export:
        if len(names) > 1:
            raise FieldError("--machine", f"one of {names} to export", arguments.machine)
        write_whole(arguments.export, json.dumps(as_file(found, names[0])) + "\n")
    if arguments.size:
        answers, refused = [], []
        for name in names:
            try:
                answers += _answer(arguments, found, name, results)
            except HotpathError as error:
                refused.append(error)
        if not answers:
            raise refused[0]
        print(*answers, *refused, sep="\n")


def _answer(
    arguments: argparse.Namespace, found: dict[Place, Measured], machine: str, results: Path
) -> list[str]:
    """The lines for one machine, with the reason if it has no answer."""
    size, count = arguments.size, arguments.count
    layouts = arguments.host, arguments.device
    if count == 1 or layouts == ("packed", "packed"):
        size, count, layouts = size * count, 1, ("packed", "packed")
    place = Place(machine, arguments.memory, arguments.direction, *layouts, arguments.busy)
    if arguments.pool is not None and place.host == "scattered":
        if arguments.pool < size * count:
            raise FieldError("--pool", f"at least {binary(size * count)}", binary(arguments.pool))
        pools = read_pools(results, find_study(STUDY))
        if refused := pools.refusal(machine, size, count, arguments.pool):
            raise HotpathError(f"{machine}: {refused}")
    if place not in found:
        raise HotpathError(f"{machine}, {place}: not measured, with pieces of any size")
    return [*lines(found[place], size, count)]


if __name__ == "__main__":
    fail_in_one_line(main)
