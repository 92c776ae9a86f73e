"""Judges this comparer and NVBench's two scripts on the same files.

    python -m analysis.compare.trial [--files kernels | results]

The files: identical kernels that NVBench timed on two GPUs (`identical.py`), and runs of unchanged
variants in this project's results. Two of them, or two groups of three, are compared; a slow-down
is then planted in every fourth row of one side. Takes several minutes.
"""

from __future__ import annotations

import contextlib
import io
import random
import re
import sys
import tarfile
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Final
from unittest.mock import patch

from analysis import ROOT
from analysis.base.cli import fail_in_one_line
from analysis.base.equivalence import FALSE_ALARMS
from analysis.base.records import read_records, write_records
from analysis.base.statistics import SAME_WITHIN
from analysis.compare.nvbench import read_files
from analysis.compare.report import compare
from analysis.compare.results import PREFERRED
from analysis.compare.trial.files import plant, write_nvbench
from analysis.compare.trial.spread import Spread, spread_of_files
from analysis.results.collect import collect, fresh
from analysis.study import discover

HERE: Final = Path(__file__).parent
FIGURES: Final = HERE / "figures.csv"
SPREAD: Final = HERE / "spread.csv"
SLOW_DOWNS: Final = (0.01, 0.02, 0.05, 0.1)
EVERY: Final = 4
"""A slow-down is planted in one of this many rows."""
MAX_PAIRS: Final = 240
"""Maximum number of pairs of single runs on one set of files; of groups, a third of it."""
PLANTED_PAIRS: Final = 4
"""Slow-downs are planted in one of this many pairs."""
GROUP: Final = 3
MIN_ROWS: Final = 8

Key = tuple[str, str]
"""A benchmark, and the values of its axes."""
Alarms = dict[Key, float]
"""Per row, the strictest setting that still calls it slower (above 0) or faster."""
Comparer = Callable[[Sequence[Path], Sequence[Path]], Alarms]


@dataclass(frozen=True)
class Figures:
    """A row of the CSV: a comparer with a setting on one set of files. `found` are shares of the
    rows with a slow-down that were called slower."""

    files: str
    runs: int
    comparer: str
    setting: float
    tables: int
    rows: int
    false_rows: int
    false_tables: int
    found_1: float
    found_2: float
    found_5: float
    found_10: float


def hotpath(a: Sequence[Path], b: Sequence[Path]) -> Alarms:
    """A setting is 1 minus the tolerated probability of a false alarm."""
    found = compare(read_files("", a), read_files("", b), SAME_WITHIN, FALSE_ALARMS)
    return {
        (one.row[1], one.row[2]): (1 - one.p) * (1 if one.ratio > 1 else -1)
        for one in found.judged
        if not 1 / (1 + SAME_WITHIN) < one.ratio < 1 + SAME_WITHIN
    }


def legacy(a: Sequence[Path], b: Sequence[Path]) -> Alarms:
    """A setting is --threshold-diff."""
    from cuda.bench.scripts import nvbench_compare

    found = {}
    for key, cells in _table(nvbench_compare, [str(a[0]), str(b[0])]):
        if cells["Status"].endswith(("SLOW", "FAST")):
            found[key] = float(cells["%Diff"].rstrip("%")) / 100
    return found


def robust(a: Sequence[Path], b: Sequence[Path]) -> Alarms:
    """A setting is `clear_gap.relative`: 0.005 by default, 0.01 if strict."""
    from cuda.bench.scripts import nvbench_compare_robust

    with TemporaryDirectory() as folder:
        settings = Path(folder, "no_gap.toml")
        settings.write_text("version = 1\n[clear_gap]\nrelative = 0.0\n")
        options = ["--display", "explain", "--config", str(settings)]
        rows = list(_table(nvbench_compare_robust, [*options, str(a[0]), str(b[0])]))
    found = {}
    for key, cells in rows:
        if cells["Status"].endswith(("SLOW", "FAST")):
            before, after = (
                _interval(next(text for name, text in cells.items() if name.startswith(side)))
                for side in ("Ref [", "Cmp [")
            )
            is_slower = after[0] > before[1]
            smaller, larger = (before[1], after[0]) if is_slower else (after[1], before[0])
            # A printed 0 hides the gap, which then counts as the smallest one.
            gap = larger / smaller - 1 if smaller else 0.0
            found[key] = max(gap, 1e-9) * (1 if is_slower else -1)
    return found


def _interval(text: str) -> tuple[float, float]:
    """The ends of `[11.21 | 11.25 | 11.38] us`, or `11.[21 | 25 | 38] us`, in seconds."""
    prefix, inner, unit = re.split(r"[\[\]]", text)
    low, _, high = (float(prefix + number.strip()) for number in re.split(r"[|/]", inner))
    scale = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[unit.strip()]
    return low * scale, high * scale


def _table(script: ModuleType, arguments: Sequence[str]) -> Iterator[tuple[Key, dict[str, str]]]:
    """The cells of each row that a script prints, by the column's name."""
    output = io.StringIO()
    command = [script.__name__, "--no-color", *arguments]
    with patch.object(sys, "argv", command), contextlib.redirect_stdout(output):
        script.main()
    name, header = "", [""]
    for line in output.getvalue().splitlines():
        # An interval has bars as well, but only with a space on either side of a number.
        cells = [cell.strip() for cell in re.split(r"\|(?![^\[]*\])", line.strip("| "))]
        if line.startswith("# "):
            name = line[2:]
        elif line.startswith("|") and "Status" in cells:
            header = cells
        elif line.startswith("|") and not line.startswith("|-"):
            yield (name, f"{header[0]}={cells[0]}"), dict(zip(header, cells, strict=True))


COMPARERS: Final[Mapping[str, tuple[Comparer, Sequence[float]]]] = {
    "hotpath": (
        hotpath,
        (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99, 0.999),
    ),
    "nvbench-compare-legacy": (
        legacy,
        (0.0, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.2, 0.3, 0.5, 1.0),
    ),
    "nvbench-compare-robust": (
        robust,
        (0.0, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.2, 0.3, 0.5, 1.0),
    ),
}
"""Each comparer with its settings, from the least strict on."""


@dataclass
class Counts:
    """Alarms of one comparer, of tables of identical programs and of planted rows."""

    tables: list[tuple[int, list[float]]] = field(default_factory=list)
    planted: dict[float, list[float]] = field(default_factory=lambda: {s: [] for s in SLOW_DOWNS})

    def figures(self, files: str, runs: int, comparer: str, setting: float) -> Figures:
        wrong = [sum(abs(alarm) >= setting for alarm in alarms) for _, alarms in self.tables]
        found = [
            sum(alarm > 0 and alarm >= setting for alarm in alarms) / len(alarms)
            for alarms in self.planted.values()
        ]
        rows = sum(count for count, _ in self.tables)
        counts = (len(self.tables), rows, sum(wrong), sum(map(bool, wrong)))
        one, two, five, ten = found
        return Figures(files, runs, comparer, setting, *counts, one, two, five, ten)


def judge_files(files: str, tables: Sequence[Sequence[Path]], scratch: Path) -> Iterator[Figures]:
    """The figures of all comparers on `tables`, each a list of NVBench files of one program."""
    for runs in (1, GROUP):
        counts: dict[str, Counts] = {}
        for number, (a, b) in enumerate(_pairs(tables, runs)):
            rows = sorted(set(read_files("", a).runs) & set(read_files("", b).runs))
            keys = [(row[1], row[2]) for row in rows]
            chosen = set(keys[random.Random(str(a)).randrange(EVERY) :: EVERY])
            planted = {
                share: [scratch / f"{share}-{run}.json" for run in range(runs)]
                for share in SLOW_DOWNS
                if number % PLANTED_PAIRS == 0
            }
            for share, copies in planted.items():
                for source, copy in zip(b, copies, strict=True):
                    plant(source, copy, share, chosen)
            for name, (comparer, _) in COMPARERS.items():
                if runs > 1 and name != "hotpath":
                    continue  # the scripts read one file a side
                count = counts.setdefault(name, Counts())
                count.tables.append((len(keys), list(comparer(a, b).values())))
                for share, copies in planted.items():
                    alarms = comparer(a, copies)
                    count.planted[share] += [alarms.get(key, 0.0) for key in chosen]
        for name, count in counts.items():
            for setting in COMPARERS[name][1]:
                yield count.figures(files, runs, name, setting)


def _pairs(
    tables: Sequence[Sequence[Path]], runs: int
) -> Iterator[tuple[Sequence[Path], Sequence[Path]]]:
    """Pairs of single files, or of disjoint groups of them, drawn at random."""
    drawn = random.Random(1)
    for files in tables:
        limit = MAX_PAIRS // len(tables) // (1 if runs == 1 else 3)
        if runs == 1:
            pairs = [([a], [b]) for a, b in combinations(files, 2)]
            yield from drawn.sample(pairs, min(limit, len(pairs)))
        elif len(files) >= 2 * runs:
            for _ in range(limit):
                group = drawn.sample(list(files), 2 * runs)
                yield group[:runs], group[runs:]


def unpacked(folder: Path) -> Iterator[tuple[str, list[list[Path]]]]:
    """The files of identical kernels, by GPU."""
    for archive in sorted(HERE.glob("*.tar.xz")):
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        name = archive.name.partition(".")[0]
        yield f"identical kernels, {name.upper()}", [sorted((folder / name).glob("*.json"))]


def converted(folder: Path) -> Iterator[tuple[str, list[list[Path]]]]:
    """Runs of unchanged variants in the committed results, by machine: a table for each study and
    set of cases."""
    studies = discover()
    collected = collect(ROOT / "results", studies)
    times = fresh(collected.samples)
    for machine in collected.machines:
        of_run: dict[tuple[str, str], dict[Key, list[float]]] = {}
        here = times[times["machine"] == machine]
        for (name, variant), rows in here.groupby(["study", "variant"]):
            study = studies[str(name)]
            metric = next(iter(study.metrics_for(study.variant(str(variant)))), PREFERRED[0])
            times_of = rows[(rows["metric"] == metric) & (rows["value"] > 0)]
            for (run, case), of_cell in times_of.groupby(["run", "case"]):
                key = (str(variant), str(case).replace(",", " ") or "one")
                of_run.setdefault((str(name), str(run)), {})[key] = of_cell["value"].tolist()
        tables: list[list[Path]] = []
        for study_name in sorted({name for name, _ in of_run}):
            # A script of NVBench fails if a row is in one file only.
            alike: dict[frozenset[Key], list[Path]] = {}
            for number, ((name, _), of_case) in enumerate(sorted(of_run.items())):
                if name == study_name and len(of_case) >= MIN_ROWS:
                    file = folder / f"{machine}-{name}-{number}.json"
                    write_nvbench(file, of_case)
                    alike.setdefault(frozenset(of_case), []).append(file)
            tables += alike.values()
        yield f"results of {machine}", [files for files in tables if len(files) > 1]


SOURCES: Final = {"kernels": unpacked, "results": converted}


def main() -> None:
    parser = ArgumentParser(prog="python -m analysis.compare.trial", description=__doc__)
    parser.add_argument(
        "--files", nargs="+", choices=SOURCES, default=list(SOURCES), help="these only"
    )
    arguments = parser.parse_args()
    found: list[Figures] = []
    spread: list[Spread] = []
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for source in arguments.files:
            for name, tables in SOURCES[source](folder):
                found += judge_files(name, tables, folder)
                if source == "kernels":
                    spread.append(spread_of_files(name, tables[0]))
    again = {row.files for row in found}
    kept = read_records(FIGURES, Figures) if FIGURES.exists() else []
    found += [row for row in kept if row.files not in again]
    write_records(FIGURES, Figures, sorted(found, key=lambda row: (row.files, row.runs)), ".4g")
    if spread:
        write_records(SPREAD, Spread, spread, ".4g")


if __name__ == "__main__":
    fail_in_one_line(main)
