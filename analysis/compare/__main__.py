"""Compares two sets of results: faster, slower, same or undecided.

    python -m analysis.compare A B [--margin 1] [--json | --markdown]

A and B are NVBench JSON files, folders of such files (each file is one run), folders of results,
one machine's folder in these, or a revision such as `main` or `main:results/nvidia-h200`. After a
folder, `@3` means its 3 newest runs, `@-3` all others, and `@2026-11` the runs of that time. The
exit code is 0, 1 if B is slower somewhere, or 2 if the runs cannot decide that.
"""

from __future__ import annotations

import sys
import traceback
from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from contextlib import ExitStack
from pathlib import Path

from analysis.base.cli import fail_in_one_line
from analysis.base.equivalence import FALSE_ALARMS
from analysis.base.errors import HotpathError, visible
from analysis.base.statistics import SAME_WITHIN
from analysis.compare.nvbench import read_files
from analysis.compare.report import CANNOT_TELL, as_json, as_markdown, as_text, compare
from analysis.compare.results import at_revision, is_machine, read_results
from analysis.compare.side import Side
from analysis.results.store.folders import machines


def main() -> None:
    parser = ArgumentParser(
        prog="python -m analysis.compare",
        description=__doc__,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("a", metavar="A")
    parser.add_argument("b", metavar="B")
    parser.add_argument(
        "--margin",
        type=_percent,
        default=SAME_WITHIN,
        metavar="PERCENT",
        help="smallest difference that matters (default: 1)",
    )
    parser.add_argument(
        "--false-alarms",
        type=_percent,
        default=FALSE_ALARMS,
        metavar="PERCENT",
        help="probability that any row is called faster or slower by chance (default: 5)",
    )
    parser.add_argument(
        "--only", nargs="+", default=(), metavar="WORD", help="rows with these words"
    )
    parser.add_argument("--metric", default="", help="this time instead of the preferred one")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", dest="form", action="store_const", const=as_json, default=as_text)
    form.add_argument("--markdown", dest="form", action="store_const", const=as_markdown)
    arguments = parser.parse_args()
    with ExitStack() as stack:
        try:
            a, b = (read(text, stack, arguments.metric) for text in (arguments.a, arguments.b))
        except (HotpathError, OSError) as error:
            print(f"error: {visible(str(error))}", file=sys.stderr)
            sys.exit(CANNOT_TELL)
        found = compare(a, b, arguments.margin, arguments.false_alarms, arguments.only)
    print(arguments.form(found))
    if not found.judged:
        expected = "rows of both sides, from different runs"
        print(
            f"error: expected {expected}, got {found.same_runs} of the same runs", file=sys.stderr
        )
    sys.exit(found.exit_code)


def read(text: str, stack: ExitStack, metric: str = "") -> Side:
    """The side that an argument names; HotpathError if there is none."""
    place, _, runs = (text, "", "") if Path(text).exists() else text.partition("@")
    path = Path(place)
    if not path.exists():
        revision, _, inner = place.partition(":")
        root = stack.enter_context(at_revision(revision, Path.cwd()))
        path = root / (inner or "results")
        if ".." in path.parts or not path.is_dir():
            raise HotpathError(f"{text}: expected a folder of results at this revision")
    elif path.is_file():
        return read_files(text, [path])
    if is_machine(path) or any(is_machine(path / name) for name in machines(path)):
        return read_results(text, path, runs, metric)
    if files := sorted(path.glob("*.json")):
        return read_files(text, files)
    raise HotpathError(f"{text}: expected results, or JSON files of NVBench")


def _percent(text: str) -> float:
    """A share, given in percent."""
    try:
        value = float(text) / 100
    except ValueError:
        value = -1
    if not 0 < value < 1:
        raise ArgumentTypeError(f"expected a number of percent above 0 and below 100, got {text!r}")
    return value


def run() -> None:
    """The command, as installed. A fault of the command is no slower row."""
    try:
        fail_in_one_line(main)
    except Exception:
        traceback.print_exc()
        sys.exit(CANNOT_TELL)


if __name__ == "__main__":
    run()
