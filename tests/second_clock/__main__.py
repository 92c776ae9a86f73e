"""Compare the engine's clocks with a second one, and print both medians of each cell.

Needs a GPU and nvcc; builds the modules that are missing. Exit code 1 if the clocks disagree.
"""

import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pandas as pd

from analysis import ROOT
from analysis.base.cli import fail_in_one_line, program
from analysis.measure.machine import whole_machine
from analysis.study import discover
from analysis.study.config import load_config
from analysis.toolchain.compilers import find_toolchain, resolve_arch
from analysis.toolchain.modules import built_modules, module_path
from tests.second_clock.clock import CELLS, build, compare


def main() -> None:
    program("tests.second_clock", __doc__).parse_args()
    rows = compare_all()
    print(rows.to_string())
    sys.exit(0 if rows["agrees"].all() else 1)


def compare_all() -> pd.DataFrame:
    """Compare the clocks in all cells, on this machine alone. Each study has a process, because
    NVBench runs once per process; BrokenProcessPool if one fails."""
    config, known = load_config({}), discover()
    arch = resolve_arch(config.arch, config.gpus)
    modules = [
        module_path(built_modules(arch), known[one.study], known[one.study].variant(one.variant))
        for one in CELLS
    ]
    targets = sorted({str(path.relative_to(ROOT)) for path in modules})
    snakemake = [sys.executable, "-m", "snakemake", *targets, "--cores", "all"]
    subprocess.run(snakemake, cwd=ROOT, check=True)
    with whole_machine(config.busy, "comparing clocks"), tempfile.TemporaryDirectory() as folder:
        library = build(find_toolchain(config.nvcc), arch, Path(folder))
        rows: list[dict[str, object]] = []
        for study in dict.fromkeys(timed.study for timed in CELLS):
            with ProcessPoolExecutor(1, get_context("spawn")) as process:
                rows += process.submit(compare, study, library).result()
        return pd.DataFrame(rows)


if __name__ == "__main__":
    fail_in_one_line(main)
