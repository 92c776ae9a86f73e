"""Runs the pipeline in a copy of the repository that has the synthetic studies."""

import json
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest
import yaml

from analysis import ROOT
from analysis.base.reading import read_yaml
from analysis.measure import cpu
from analysis.toolchain.compile import OPTIMISATION
from analysis.toolchain.reports import REPORT
from tests.compiled import ARCH, QUICK, bindings_object, module_file, use_built_library
from tests.editing import replace_in
from tests.repository import TOPS
from tests.roots import keep_engine, make_root
from tests.synthetic import CALLS

ROUNDS, SAMPLES = 3, 2
SETTINGS = ('studies=["calls"]', "machine=test-box")
FORKS = Path(__file__).with_name("forks.py")
REPLACED = (*(f"{top.name}/" for top in TOPS), "docs/", "results/", "tests/")
"""Folders that are synthetic in the copy, or missing."""
SHORTENED = {
    "analysis/measure/round.py": ("WARM_UP_S = 0.3\n", "WARM_UP_S = 0.001\n"),
    "analysis/measure/cpu.py": (
        "    source, target = _buffers()\n",
        "    return Look(copy_bytes_per_s=14e9, busy_share=0.0, steal_s=1.0)\n",
    ),
    "analysis/toolchain/compile.py": (f'"{OPTIMISATION}"', f'"{QUICK}"'),
}
"""Changes of files in the copy: rounds of host code need no raised clocks, other tests would
disturb the rounds, and the speed of a module does not matter. Text to replace, and the text that
replaces it."""


@cache
def _forks() -> subprocess.Popen[str]:
    """The process that has imported Snakemake: the import takes most of the time of a short run."""
    command = [sys.executable, "-c", FORKS.read_text()]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def snakemake(
    copy: Path, *targets: str, settings: tuple[str, ...] = SETTINGS
) -> subprocess.CompletedProcess[str]:
    """Run Snakemake in the copy. Its output includes that of its jobs."""
    arguments = ["--cores", "2", *targets, "--config", *settings]
    forks = _forks()
    assert forks.stdin is not None and forks.stdout is not None
    with tempfile.NamedTemporaryFile() as output:
        print(json.dumps([str(copy), arguments, output.name]), file=forks.stdin, flush=True)
        status = int(forks.stdout.readline())
        return subprocess.CompletedProcess(arguments, status, output.read().decode())


def succeed(copy: Path, *targets: str, settings: tuple[str, ...] = SETTINGS) -> str:
    done = snakemake(copy, *targets, settings=settings)
    assert done.returncode == 0, done.stdout
    return done.stdout


def copy_of_pipeline(folder: Path, *, alone: bool = False) -> Path:
    """Copy the files of the repository, but with synthetic studies, pages and published results;
    `alone` with one study, and no results."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file() and not name.startswith(REPLACED):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    # With the times of the originals, what Python has compiled of them is valid for the copies.
    for compiled in (ROOT / "analysis").rglob("__pycache__"):
        shutil.copytree(compiled, folder / compiled.relative_to(ROOT), dirs_exist_ok=True)
    for name, change in SHORTENED.items():
        replace_in(folder / name, *change)
    (folder / "profiles").symlink_to("workflow/profiles")
    make_root(folder)
    for other in ("copy", "strides") if alone else ():
        shutil.rmtree(folder / "kernels" / other)
        (folder / "docs" / "studies" / f"{other}.md").unlink()
    if alone:
        shutil.rmtree(folder / "results")
    config = read_yaml(folder / "config" / "config.yaml")
    config["grids"]["default"] |= {"rounds": ROUNDS, "samples": SAMPLES}
    (folder / "config" / "config.yaml").write_text(yaml.safe_dump(config))
    return folder


def add_modules(copy: Path) -> None:
    """Add the modules of `calls`, and what else takes long to make, to the copy: made once for all
    copies and newer than their sources, so that the pipeline does not make them."""
    folder = copy / "build" / "modules" / ARCH / CALLS.name
    folder.mkdir(parents=True)
    shutil.copy(bindings_object(CALLS, QUICK), folder)
    for variant in CALLS.variants:
        if variant.is_compiled:
            module = module_file(CALLS, variant, optimisation=QUICK)
            shutil.copy(module, folder)
            shutil.copy(module.with_suffix(REPORT), folder)
    with pytest.MonkeyPatch.context() as patch:
        use_built_library(patch)
        shutil.copy(cpu.LIBRARY, copy / "build")
    keep_engine(copy / "build")
