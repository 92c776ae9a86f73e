"""Compare the engine's clocks with a second one, and print both medians of each cell.

Needs a GPU and nvcc; builds the modules that are missing. Exit code 1 if the clocks disagree.
"""

import gc
import os
import subprocess
import sys
import tempfile
import traceback
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NoReturn

import pandas as pd

from analysis import ROOT
from analysis.base.cli import fail_in_one_line, program
from analysis.base.gpu import open_gpus, show_only
from analysis.measure.machine import whole_machine
from analysis.measure.round import RoundJob
from analysis.study import discover
from analysis.study.config import Grid, load_config
from analysis.toolchain.compilers import find_toolchain, resolve_arch
from analysis.toolchain.modules import built_modules, module_path
from tests.second_clock.clock import CELLS, BothClocks, build


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


def compare(study_name: str, library: Path) -> list[dict[str, object]]:
    """Compare the clocks in all cells of a study. Once per process, like NVBench."""
    from analysis.measure.nvbench import run_under_nvbench

    config, study = load_config({}), discover()[study_name]
    cells = {one: one.cell(study) for one in CELLS if one.study == study_name}
    with tempfile.TemporaryDirectory() as folder, open_gpus(config.gpus[:1]) as gpus:
        show_only(gpus)
        os.sched_setaffinity(0, gpus[0].local_cpus())
        job = RoundJob(
            study=study,
            variants=list({cell.variant.name: cell.variant for cell in cells.values()}.values()),
            grid=Grid(name="full", rounds=1, samples=60, sample_budget_s=0.5),
            run="second clock",
            number=0,
            modules=built_modules(resolve_arch(config.arch, config.gpus)),
            gpu_keys=tuple(gpu.key for gpu in gpus),
            out=Path(folder) / "round",
        )
        bench = BothClocks(job, tuple(gpus), library)
        gc.disable()
        run_under_nvbench([*cells.values()], bench.measure, fail, job.out)
    return [row for timed, cell in cells.items() for row in bench.compared(timed, cell)]


def fail(error: BaseException) -> NoReturn:
    """End the process, because NVBench would continue with the next cell."""
    traceback.print_exception(error)
    os._exit(1)


if __name__ == "__main__":
    fail_in_one_line(main)
