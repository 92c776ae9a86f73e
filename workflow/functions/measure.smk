# Finds what has to be measured and profiled, and reports what was measured. Hashes decide what is
# measured: a study is requested only while some of its samples are missing.
import time
from contextlib import ExitStack
from functools import cache
from typing import NamedTuple

from analysis.base.gpu import NoGpu, open_gpus
from analysis.measure.outcome import outcome
from analysis.measure.places import find_places
from analysis.measure.plan import lacks_captures, pending, wrong_variants
from analysis.study import CAPTURE_KINDS
from analysis.toolchain.arch import UnsupportedGpu

# Snakemake's record of parameters is in the same folder, so that both are removed together.
MARKERS = Path(".snakemake") / "hotpath" / CONFIG.grid.name
MACHINE_MARKS = TABLES / "machines"
# Marks that what measuring imports was read from disk since build/ is there.
READ_AHEAD = Path("build") / "read_ahead"
# Marks everything pending as measured by this invocation.
MEASURED = MARKERS / "pending"
STARTED = time.time()


def profiled(study):
    """Marks a study as profiled by this invocation."""
    return MARKERS / "profiled" / study


def request(names, marker):
    """The pending `names` and the age of the marker. As a parameter it makes a rule run even though
    an earlier invocation has left its marker."""
    since = marker.stat().st_mtime_ns if marker.exists() else 0
    return f"{' '.join(names)} since {since}"


class Here(NamedTuple):
    """Where studies are measured on this machine: None on a cluster's host, and where nothing can be
    measured for the reason `why`."""

    places: object = None
    why: str = ""


class Unfinished(NamedTuple):
    """Requests by study for samples and captures."""

    samples: dict = {}
    captures: dict = {}


@cache
def here():
    """This machine, whose GPUs only targets that measure open."""
    # Nodes of a cluster find out by themselves what is pending on them.
    if CONFIG.machines:
        return Here()
    try:
        with ExitStack() as stack:
            try:
                gpus = stack.enter_context(open_gpus(CONFIG.gpus))
            except NoGpu:
                gpus = ()
            return Here(find_places(CONFIG, gpus))
    except UnsupportedGpu as error:
        return Here(why=str(error))
    except HotpathError as error:
        sys.exit(f"error: {error}")


@cache
def unfinished():
    """Everything that lacks a fresh sample or capture on this machine.

    Only input functions and parameters call it, so that targets that do not ask for everything
    pending read no results.
    """
    if here().places is None:
        return Unfinished()
    try:
        return find_unfinished()
    except HotpathError as error:
        sys.exit(f"error: {error}")


def find_unfinished():
    """Everything pending in every study. Measuring also fails for a variant whose last output was
    wrong, and is therefore requested."""
    samples, captures, grid = {}, {}, CONFIG.grid.name
    for name, study in CONFIG.studies.items():
        place = here().places[name]
        lacking = [v.name for v in pending(study, place, grid, CONFIG.runs)]
        lacking += wrong_variants(study, place)
        if lacking:
            samples[name] = request(lacking, MEASURED)
        if lacks_captures(study, place, grid, CAPTURE_KINDS):
            captures[name] = request(CAPTURE_KINDS, profiled(name))
        if name in samples or name in captures:
            require_room(place.folder)
    return Unfinished(samples, captures)


def measured_now(wildcards):
    """Marks of the studies that this invocation must measure here, or of a cluster's machines."""
    if here().why:
        sys.exit(f"error: {here().why}")
    machines = [MACHINE_MARKS / machine.name / "merged" for machine in CONFIG.machines]
    return machines or ([MEASURED] if unfinished().samples else [])


def new_results(wildcards):
    """Marks of the measurements that a site waits for: none if no site shows them."""
    if not (is_unpublished() or here().why):
        return measured_now(wildcards)
    report_unpublished()
    return []


@cache
def report_unpublished():
    """Report once why a site waits for no measurement."""
    if here().why:
        logger.info(here().why)
    elif unfinished().samples:
        logger.info(
            "nothing is measured: no GPU was found and this machine has no name; to measure studies"
            " that need no GPU, add --config machine=NAME"
        )


def profiled_now(wildcards):
    """Marks of the studies that this invocation must profile."""
    return [profiled(study) for study in unfinished().captures]


def is_unpublished():
    """Whether no site shows what is measured here: no GPU was found and the machine has no name."""
    places = (here().places or {}).values()
    return any(place.root.resolve() != CONFIG.results.resolve() for place in places)


def modules_to_run(study, variants):
    """The modules of `variants` that this machine can run."""
    place = here().places and here().places[study]
    runnable = {
        variant.name
        for variant in variants
        if place is None or place.unmet(variant) is None
    }
    return [module for module in modules_of(study) if module.stem in runnable]


def measuring_inputs(study, variants):
    """Files that measuring or profiling variants of a study reads. Samples are added to earlier
    results, so those are no input."""
    code = sources("config/config.yaml", "analysis/**/*.py")
    modules = modules_to_run(study, variants)
    return [*modules, CPU_CACHE, *files_of(study), *code]


def study_inputs(wildcards):
    return measuring_inputs(wildcards.study, CONFIG.known[wildcards.study].variants)


def variant_inputs(wildcards):
    """Inputs to measure a variant together with its baselines."""
    study = CONFIG.known[wildcards.study]
    return measuring_inputs(study.name, study.companions(wildcards.variant))


def pending_inputs(wildcards):
    places = (here().places or {}).values()
    return [
        *([READ_AHEAD] if any(place.gpus for place in places) else []),
        *(
            path
            for study in unfinished().samples
            for path in measuring_inputs(study, CONFIG.known[study].variants)
        ),
    ]


def pending_requests(wildcards):
    return unfinished().samples


def pending_studies(wildcards):
    return list(unfinished().samples)


def pending_names(wildcards):
    return ", ".join(unfinished().samples)


def capture_request(wildcards):
    return unfinished().captures.get(wildcards.study, "")


def report_outcome():
    """Report what this invocation has measured, or why it has measured nothing."""
    places = here().places if here.cache_info().currsize else None
    if places is None:
        return
    requests = unfinished().samples if unfinished.cache_info().currsize else {}
    logs = Path("build/logs/measure")
    for line in outcome(CONFIG.studies.values(), requests, places, STARTED, logs):
        logger.info(line)


onsuccess:
    report_outcome()


onerror:
    report_outcome()
