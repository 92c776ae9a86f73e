# Shared by every stage: the checked configuration, paths, and how to run our code.
import hashlib
import json
import os
import shlex
import sys
from pathlib import Path

sys.path.insert(0, workflow.basedir)

from snakemake.logging import logger
from snakemake.settings.enums import Quietness

from analysis.toolchain.compilers import find_toolchain, require_arch, resolve_arch
from analysis.toolchain.packages import package_versions
from analysis.toolchain.compiled import CODE_TABLES as UNDERIVED_TABLES
from analysis.toolchain.compiled import MADE_OF, is_kept
from analysis.study.config import BUILD, load_config
from analysis.base.errors import HotpathError
from analysis.base.files import require_plain_path, require_room
from analysis.base.jobs import tell_jobs
from analysis.base.locks import take
from analysis.measure.cpu_cache import LIBRARY
from analysis.toolchain.modules import module_path
from analysis.base.processes import STARTER, pass_interrupts_on
from analysis.study.source import bindings_files, source_files
from analysis.base.terminal import Line


def targets(unknown):
    """What a person can ask for in place of what is unknown: rules that only name what they need,
    and a variant again."""
    again, study = TABLES / "measured", Path(unknown).parent.name
    if Path(unknown).parent.parent != again:
        names = sorted(rule.name for rule in workflow.rules if rule.norun)
        return [*names, str(again / "STUDY" / "VARIANT")]
    if study not in CONFIG.known:
        return [str(again / name / "VARIANT") for name in CONFIG.known]
    return [str(again / study / name) for name in CONFIG.known[study].variant_names]


# Where Snakemake is hushed, as by the profile, its jobs are told in our own words.
if Quietness.RULES in (workflow.output_settings.quiet or ()):
    tell_jobs(logger, Line(sys.stderr), lambda: workflow.dryrun, targets)

try:
    require_room(Path(workflow.basedir))
    require_plain_path(Path(workflow.basedir))
    CONFIG = load_config(config)
    ARCH = resolve_arch(CONFIG.arch, CONFIG.gpus)
    TOOLCHAIN = find_toolchain(CONFIG.nvcc, CONFIG.libfabric)
    require_arch(ARCH, TOOLCHAIN.nvcc)
except HotpathError as error:
    sys.exit(f"error: {error}")

# A module is rebuilt if its compiler changes.
COMPILER = f"{TOOLCHAIN.nvcc} {TOOLCHAIN.version}, {TOOLCHAIN.cxx_version}"
LIBFABRIC = shlex.quote(CONFIG.libfabric)
PYTHON = shlex.quote(sys.executable)
# What is kept of a study beside the tables that it derives.
UNDERIVED = (MADE_OF, *UNDERIVED_TABLES)
SETTINGS = shlex.quote(json.dumps(config))
# The smoke grid has its own results, tables and site, separate from the real ones.
IS_SMOKE = CONFIG.grid.name == "smoke"
TABLES = Path("build/smoke" if IS_SMOKE else "build")
SITE = Path("build/smoke/site" if IS_SMOKE else "site")
# What is asked for narrows what is measured. A real site shows all there is; one of a trial shows
# what was tried.
SHOWN = CONFIG.studies if IS_SMOKE else CONFIG.known
RESULTS = CONFIG.results.relative_to(Path(workflow.basedir))
# On a cluster they are not known before a job runs.
ALL_CORES = workflow.resource_settings.cores or 1
MODULES = Path("build/modules") / ARCH
CPU_CACHE = LIBRARY.relative_to(workflow.basedir)

# What the rules run ends with this process, however that ends.
os.environ[STARTER] = str(os.getpid())


def busy(holder):
    sys.exit(f"error: this checkout is in use by {holder}; wait until that has ended")


onstart:
    # In place of Snakemake's own lock, which stays when it is killed.
    take(Path(".snakemake/hotpath.lock"), f"snakemake, process {os.getpid()}", busy)
    # What reads results wants their folder, if with nothing in it.
    RESULTS.mkdir(parents=True, exist_ok=True)
    # Snakemake would let running jobs finish, and a study takes minutes.
    pass_interrupts_on()
    # While jobs wait, every job that ends would have it look once more a second, without end: half a
    # core beside what is measured.
    workflow.scheduler.job_rate_limiter = None


wildcard_constraints:
    study="|".join(CONFIG.known),
    variant="|".join(
        {v.name for study in CONFIG.known.values() for v in study.variants}
    ),


def digest(files):
    """A hash of a list of files, so that a removed file also triggers its rule."""
    return hashlib.sha256("\n".join(files).encode()).hexdigest()[:16]


def sources(*patterns):
    """Files of the repository that match any of the glob patterns."""
    found = {path for pattern in patterns for path in Path().glob(pattern)}
    return sorted(str(path) for path in found if "__pycache__" not in path.parts)


def files_of(study):
    """Everything in a study's folder: sources, headers, description, recorded traces."""
    folder = CONFIG.known[study].folder.relative_to(workflow.basedir)
    return sources(f"{folder}/**/*.*")


# Of all studies: whether a result is stale depends on the code beside it.
STUDIES = sources("kernels/**/*.*", "allocator/**/*.*")
SCHEMAS = sources("workflow/schemas/*.yaml")
# What every stage stands on; what reads the description of a study is there.
CORE = sources("analysis/*.py", "analysis/base/*.py", "analysis/study/**/*.py")
