# Shared by every stage: the checked configuration, paths, and functions that find files.
import hashlib
import json
import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from snakemake.logging import logger

sys.path.insert(0, workflow.basedir)

from analysis.base.errors import HotpathError
from analysis.base.files import require_room, take
from analysis.base.processes import STARTER, pass_interrupts_on
from analysis.study.config import load_config
from analysis.study.source import study_files
from analysis.toolchain.compilers import resolve_arch
from analysis.toolchain.compilers import find_nvcc, require_arch


def ending_in_one_line(function):
    """`function`, called once per argument, whose HotpathError ends Snakemake with one line."""

    @cache
    def call(*arguments):
        try:
            return function(*arguments)
        except HotpathError as error:
            sys.exit(f"error: {error}")

    return call


try:
    for folder in (".", "build", "site"):
        require_room(Path(workflow.basedir, folder))
    CONFIG = load_config(config)
    ARCH = resolve_arch(CONFIG.arch, CONFIG.gpus, CONFIG.nvcc)
    if installed := find_nvcc(CONFIG.nvcc):
        require_arch(ARCH, installed)
except HotpathError as error:
    sys.exit(f"error: {error}")
PYTHON = sys.executable

# The smoke grid has results, tables and a site that are separate from the real ones.
IS_SMOKE = CONFIG.grid.name == "smoke"
TABLES = Path("build/smoke" if IS_SMOKE else "build")
SITE = Path("build/smoke/site" if IS_SMOKE else "site")
# The setting `studies` limits what is measured. The real site shows all studies; a smoke site shows
# those that were measured.
SHOWN = CONFIG.studies if IS_SMOKE else CONFIG.known
RESULTS = CONFIG.results.relative_to(Path(workflow.basedir))
# Jobs get the configuration as JSON.
SETTINGS = json.dumps(config)

# Snakemake does not use this folder, and leaves it in the temporary directory if it is killed.
with suppress(OSError):
    workflow.snakemake_tmp_dir.rmdir()
# Programs that the rules run end when this process ends.
os.environ[STARTER] = str(os.getpid())
LOCKS = []  # Held until this process ends.


def refuse_second_run(holder):
    sys.exit(f"error: this checkout is in use by {holder}; wait until that has ended")


onstart:
    # Snakemake's lock outlives a killed process; this one does not.
    holder = f"snakemake, process {os.getpid()}"
    LOCKS.append(take(Path(".snakemake/hotpath.lock"), holder, refuse_second_run))
    # Programs that read results require their folder, even an empty one.
    RESULTS.mkdir(parents=True, exist_ok=True)
    # With a limit of jobs per second, Snakemake would look at all waiting jobs again every second,
    # and once more for each that has ended.
    workflow.scheduler.job_rate_limiter = None
    # Snakemake lets running jobs finish after an interrupt, and a study takes minutes.
    pass_interrupts_on()


wildcard_constraints:
    study="|".join(CONFIG.known),
    variant=r"\w+",


def study_of(wildcards):
    return CONFIG.known[wildcards.study]


def sources(*patterns):
    """Files of the repository that match any of the glob patterns."""
    found = {path for pattern in patterns for path in Path().glob(pattern)}
    return sorted(str(path) for path in found if "__pycache__" not in path.parts)


@cache
def files_of(study):
    """All files in a study's folder, and those of other folders that they include or import."""
    files = study_files(CONFIG.known[study])
    return sorted(str(path.relative_to(workflow.basedir)) for path in files)


def digest(names):
    """A hash of a list of names. As a parameter, it also triggers its job when a file is removed."""
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]


# All studies, and what they share: a result is stale when the code it belongs to changes.
STUDIES = sources(
    *{f"{study.folder.parent.name}/**/*.*" for study in CONFIG.known.values()}
)
# Modules that every stage imports, among them those that read study.yaml.
CORE = sources("analysis/*.py", "analysis/base/*.py", "analysis/study/**/*.py")
TOOLCHAIN_CODE = sources("analysis/toolchain/*.py")
# The modules that a study imports.
API = sources("analysis/api/*.py")
