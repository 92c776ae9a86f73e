"""Compare the engine's clocks with a second one, and print both medians of each cell.

    python -m tests.second_clock              all studies, each in a process of its own
    python -m tests.second_clock method       one study

Needs a GPU and nvcc; builds the modules that are missing. Exit code 1 if the clocks disagree.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from analysis import ROOT
from analysis.base.cli import fail_in_one_line
from analysis.base.errors import HotpathError
from analysis.measure.machine_lock import whole_machine
from analysis.study import discover
from analysis.study.config import load_config
from analysis.toolchain.arch import resolve_arch
from analysis.toolchain.compilers import find_toolchain
from analysis.toolchain.modules import built_modules, module_path
from tests.second_clock.cells import CELLS, Timed
from tests.second_clock.clock import build
from tests.second_clock.compare import Compared, compare


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.second_clock", description=__doc__)
    known = list(dict.fromkeys(timed.study for timed in CELLS))
    parser.add_argument("studies", nargs="*", metavar="STUDY", help=f"one of {', '.join(known)}")
    parser.add_argument("--library", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if unknown := set(arguments.studies) - set(known):
        raise HotpathError(f"STUDY: expected one of {', '.join(known)}, got {min(unknown)}")
    if arguments.library:  # the process of one study
        compared = [asdict(row) for row in compare(arguments.studies[0], arguments.library)]
        arguments.out.write_text(json.dumps(compared))
        return
    rows = compare_all(arguments.studies or known)
    print("\n".join(table(rows)))
    sys.exit(0 if all(row.agrees for row in rows) else 1)


def compare_all(studies: Sequence[str]) -> list[Compared]:
    """Compare the clocks in all cells of these studies, on this machine alone."""
    config = load_config({})
    arch = resolve_arch(config.arch, config.gpus)
    build_modules(arch, studies)
    with (
        whole_machine(config.busy, "comparing clocks"),
        tempfile.TemporaryDirectory() as folder,
    ):
        library = build(find_toolchain(config.nvcc), arch, Path(folder))
        return [row for study in studies for row in in_process(study, library, Path(folder))]


def build_modules(arch: str, studies: Sequence[str]) -> None:
    """Build the modules of these studies' cells by the pipeline, as for a measurement."""
    known, targets = discover(), set()
    for timed in CELLS:
        if timed.study in studies:
            study = known[timed.study]
            path = module_path(built_modules(arch), study, study.variant(timed.variant))
            targets.add(str(path.relative_to(ROOT)))
    command = [sys.executable, "-m", "snakemake", *sorted(targets), "--cores", "all"]
    subprocess.run(command, cwd=ROOT, check=True)


def in_process(study: str, library: Path, folder: Path) -> list[Compared]:
    """Compare the clocks in a new process, because NVBench runs once per process."""
    out = folder / f"{study}.json"
    command = [sys.executable, "-m", "tests.second_clock", study]
    done = subprocess.run(
        [*command, "--library", library, "--out", out], cwd=ROOT, env=os.environ, check=False
    )
    if done.returncode != 0:
        raise HotpathError(f"{study}: expected a comparison, got exit code {done.returncode}")
    rows = json.loads(out.read_text())
    return [Compared(**{**row, "timed": Timed(**row["timed"])}) for row in rows]


def table(rows: Sequence[Compared]) -> list[str]:
    """Lines with cell, metric, median of the engine and of the second clock, and their ratio."""
    lines = [f"{'engine':>12} {'second clock':>12} {'ratio':>6}      cell"]
    for row in rows:
        verdict = "ok" if row.agrees else "OFF"
        times = f"{row.engine_s * 1e6:9.3f} µs {row.second_s * 1e6:9.3f} µs {row.ratio:6.3f}"
        cell = f"{row.timed.study}/{row.timed.variant} {row.timed.case} {row.metric}"
        lines.append(f"{times} {verdict:4} {cell}")
    return lines


if __name__ == "__main__":
    fail_in_one_line(main)
