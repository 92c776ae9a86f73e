"""Compares two sets of runs: each row is different, equal within the margin, or undecided.

A and B are each one of
  results, results/MACHINE  run files of this project: all machines, a machine, a study or a run
  FILE.json, FOLDER         NVBench's JSON: a file is a run, a folder has several
  -                         CSV on standard input: a column `seconds` with a sample a line, perhaps
                            `run`, and names of the row; `-` without B needs a column `side`
"""

import sys
import traceback
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from contextlib import suppress
from pathlib import Path
from typing import Final

from analysis.base.cli import fail_in_one_line
from analysis.base.errors import FieldError, HotpathError, visible
from analysis.compare.judge import EQUAL_WITHIN
from analysis.compare.nvbench import read_files
from analysis.compare.report import CANNOT_TELL, as_json, as_text, compare
from analysis.compare.results import read_results, study_folders
from analysis.compare.side import Side, read_sides
from analysis.results.store.keys import RUN
from analysis.results.store.runs import run_of

STDIN: Final = "-"
EXIT_CODES: Final = "The exit code is 0, 1 if B is slower somewhere, or 2 if that is undecided."


def main() -> None:
    parser = ArgumentParser(
        usage="compare A [B] [options]",
        description=__doc__,
        epilog=EXIT_CODES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("a", metavar="A", help=SUPPRESS)
    add("b", metavar="B", nargs="?", help=SUPPRESS)
    margin = "smallest difference that matters (default: 5)"
    add("--margin", type=_percent, default=EQUAL_WITHIN, metavar="PERCENT", help=margin)
    add("--only", nargs="+", default=(), metavar="WORD", help="rows with these words")
    add("--metric", default="", metavar="TIME", help="this time instead of the preferred one")
    add("--json", action="store_true", help="for programs")
    arguments = parser.parse_args()
    try:
        if arguments.b is None and arguments.a != STDIN:
            raise FieldError("B", "another side, unless A is -", None)
        a, b = (
            read_sides(sys.stdin, 2)
            if arguments.b is None
            else [read(text, arguments.metric) for text in (arguments.a, arguments.b)]
        )
        found = compare(a, b, arguments.margin, arguments.only)
        print(as_json(found) if arguments.json else as_text(found))
        if found.judged.empty:
            expected = "rows of both sides, from different runs"
            raise HotpathError(f"expected {expected}, got {found.same_runs} of the same runs")
    except (HotpathError, OSError) as error:
        print(f"error: {visible(str(error))}", file=sys.stderr)
        sys.exit(CANNOT_TELL)
    sys.exit(found.exit_code)


def read(text: str, metric: str = "") -> Side:
    """The side that an argument names; HotpathError if there is none."""
    if text == STDIN:
        return read_sides(sys.stdin, 1)[0]
    path, run = Path(text), ""
    if path.is_file() and RUN.fullmatch(run_of(path)):
        path, run = path.parent, run_of(path)
    if study_folders(path):
        return read_results(text, path, run, metric)
    files = [path] if path.is_file() else sorted(path.glob("*.json"))
    if not files:
        raise HotpathError(f"{text}: expected run files of this project, or JSON files of NVBench")
    if metric:
        raise FieldError(text, "results of this project, for --metric", "NVBench's files")
    return read_files(text, files)


def _percent(text: str) -> float:
    """A share, given in percent."""
    with suppress(ValueError):
        if 0 < (share := float(text) / 100) < 1:
            return share
    raise ArgumentTypeError(f"expected a number of percent above 0 and below 100, got {text!r}")


def run() -> None:
    """The command, as installed. A fault of the command is no slower row."""
    try:
        fail_in_one_line(main)
    except Exception:
        traceback.print_exc()
        sys.exit(CANNOT_TELL)


if __name__ == "__main__":
    run()
