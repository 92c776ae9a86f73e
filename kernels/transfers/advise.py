"""Print which call moves pieces fastest on a machine, from committed results.

    python -m kernels.transfers.advise --size 24KiB --count 1024
    python -m kernels.transfers.advise --size 16MiB --memory pageable --machine my-box
    python -m kernels.transfers.advise --export answers.json --machine my-box

The answer is the simplest call within 5 % of the fastest, in the measured cell or between its
neighbours. Without such cells, the command says so and names the nearest one. Pieces lie in a pool
of host memory that the GPU's translations cover.
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
    at_least,
    fail_in_one_line,
    find_study,
    load_config,
    program,
    require_known,
)
from analysis.api.tables import fresh_rows, link_rates, machines

from .answering import ANY, LAYOUTS, Measured, Place, as_file, measured
from .kinds import MEMORIES
from .measured import DIRECTIONS

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


def command_line() -> argparse.ArgumentParser:
    parser = program("kernels.transfers.advise", __doc__)
    parser.add_argument("--size", type=parse_size, help="of a piece: 4096, 4KiB")
    parser.add_argument("--count", type=at_least(1), default=1, help="of pieces (1)")
    parser.add_argument("--direction", choices=DIRECTIONS, default="h2d", help="(h2d)")
    for side in ("host", "device"):
        about = "layout there (scattered)"
        parser.add_argument(f"--{side}", choices=LAYOUTS, default="scattered", help=about)
    parser.add_argument("--busy", action="store_true", help="the stream has unfinished work")
    parser.add_argument("--memory", choices=[ANY, *MEMORIES], default="pinned", help="(pinned)")
    parser.add_argument("--machine", default="all", help="name of a machine in the results (all)")
    parser.add_argument("--results", type=Path, help="folder of the machines' results")
    parser.add_argument("--export", type=Path, metavar="FILE", help="write all answers as JSON")
    return parser


def main() -> None:
    arguments = command_line().parse_args()
    size, count, layouts = arguments.size, arguments.count, (arguments.host, arguments.device)
    if not size and not arguments.export:
        raise FieldError("--size", "bytes such as 4096, 4KiB or 16MiB", None)
    study = find_study(STUDY)
    assert study.limit is not None
    results = arguments.results or load_config({}).results
    found = measured(study, fresh_rows(results, study), link_rates(results, study.limit))
    known = [name for name in machines(results) if name in {place.machine for place in found}]
    if arguments.machine != "all":
        require_known("--machine", arguments.machine, known)
        known = [arguments.machine]
    if arguments.export:
        if len(known) != 1:
            raise FieldError("--machine", f"one of {known} to export", arguments.machine)
        write_whole(arguments.export, json.dumps(as_file(found, known[0])) + "\n")
    if not size:
        return
    if count == 1 or layouts == ("packed", "packed"):
        size, count, layouts = size * count, 1, ("packed", "packed")
    answers, refused = list[str](), list[HotpathError]()
    for name in known:
        place = Place(name, arguments.memory, arguments.direction, *layouts, arguments.busy)
        try:
            answers += lines(found.get(place, Measured(place, {}, {})), size, count)
        except HotpathError as error:
            refused.append(error)
    if not answers:
        raise next(iter(refused), HotpathError(f"{study.name}: no fresh results"))
    print(*answers, *refused, sep="\n")


if __name__ == "__main__":
    fail_in_one_line(main)
