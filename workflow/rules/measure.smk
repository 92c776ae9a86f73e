# Measures what lacks fresh samples, and profiles what lacks captures. Hashes decide, not file times.
# Rules that need no samples have a higher priority: nothing else then waits during a measurement,
# and Snakemake checks waiting jobs at least once a second.
from contextlib import ExitStack

from analysis.base.gpu import NoGpu, open_gpus
from analysis.measure.plan import find_places, lacks_captures, pending, wrong_variants
from analysis.study import CAPTURE_KINDS
from analysis.toolchain.compilers import UnsupportedGpu

MARKS = Path(".snakemake") / "hotpath" / CONFIG.grid.name
MEASURED = MARKS / "pending"
"""Marks everything pending as measured by this invocation."""
PROFILED = MARKS / "profiled"
MACHINE_MARKS = TABLES / "machines"
MEASURING = sources("config/config.yaml", "analysis/**/*.py")


@ending_in_one_line
def here():
    """Where this machine measures each study, and otherwise the reason why it measures none.

    Only targets that measure ask, because that opens the GPUs. Nodes of a cluster ask by themselves.
    """
    if CONFIG.machines:
        return None, ""
    try:
        with ExitStack() as stack:
            try:
                gpus = stack.enter_context(open_gpus(CONFIG.gpus))
            except NoGpu:
                gpus = ()
            return find_places(CONFIG, gpus), ""
    except UnsupportedGpu as error:
        return None, str(error)


@ending_in_one_line
def unfinished():
    """The studies that lack fresh samples on this machine, and those that lack captures. Measuring
    also fails for a variant whose last output was wrong, so its study is among the first.
    """
    places, _ = here()
    samples, captures = [], []
    for name, study in CONFIG.studies.items() if places else ():
        place, grid = places[name], CONFIG.grid.name
        if pending(study, place, grid, CONFIG.runs) or wrong_variants(study, place):
            samples.append(name)
        if lacks_captures(study, place, grid, CAPTURE_KINDS):
            captures.append(name)
        if name in samples or name in captures:
            require_room(place.folder)
    # Marks of earlier invocations would keep their rules from running.
    for mark in [*[MEASURED][: len(samples)], *(PROFILED / name for name in captures)]:
        mark.unlink(missing_ok=True)
    return samples, captures


def measured_now(wildcards):
    """Marks of the studies that this invocation must measure here, or of a cluster's machines."""
    if CONFIG.machines:
        return [MACHINE_MARKS / machine.name / "merged" for machine in CONFIG.machines]
    if here()[1]:
        sys.exit(f"error: {here()[1]}")
    return [MEASURED] if unfinished()[0] else []


@cache
def why_unpublished():
    """Why a site shows nothing that is measured here, if so. The first call prints it."""
    places, why = here()
    roots = {place.root.resolve() for place in (places or {}).values()}
    if roots - {CONFIG.results.resolve()} and unfinished()[0]:
        why = "no GPU was found and this machine has no name, so nothing is measured; to measure"
        why += " studies that need no GPU, add --config machine=NAME"
    if why:
        logger.info(why)
    return why


def new_results(wildcards):
    """Marks of the measurements that a site waits for."""
    return [] if why_unpublished() else measured_now(wildcards)


def measuring_inputs(study, variants=None):
    """Files that measuring or profiling a study, or only some variants, reads: only modules that this
    machine can run. Samples are added to earlier results, so those are no input."""
    places, _ = here()
    runnable = [
        variant.name
        for variant in variants or study.variants
        if not places or places[study.name].unmet(variant) is None
    ]
    modules = [module for module in modules_of(study.name) if module.stem in runnable]
    return [*modules, CPU_CACHE, *files_of(study.name), *MEASURING]


def pending_inputs(wildcards):
    return [
        path
        for name in unfinished()[0]
        for path in measuring_inputs(CONFIG.known[name])
    ]


def all_cores(wildcards):
    return workflow.cores  # Nothing else may run on the machine.


# One process for all studies: imports and the start of a process take longer than most cells.
rule measure_pending:
    input:
        pending_inputs,
    output:
        touch(MEASURED),
    log:
        "build/logs/measure/pending.log",
    threads: all_cores
    params:
        studies=lambda wildcards: unfinished()[0],
    message:
        "Measuring {params.studies}"
    shell:
        "{PYTHON:q} -m analysis.measure {params.studies} --config {SETTINGS:q} 2> {log}"


rule measure_variant:
    input:
        # Its baselines are measured together with it.
        lambda wildcards: measuring_inputs(
            study_of(wildcards),
            study_of(wildcards).companions(variant_of(wildcards).name),
        ),
    output:
        touch(TABLES / "measured" / "{study}" / "{variant}"),
    log:
        "build/logs/measure/{study}/{variant}.log",
    threads: all_cores
    shell:
        "{PYTHON:q} -m analysis.measure {wildcards.study} --variant {wildcards.variant}"
        " --config {SETTINGS:q} 2> {log}"


# Captures counters and timelines of headline cases, apart from timing.
rule profile_study:
    input:
        measured_now,
        lambda wildcards: measuring_inputs(study_of(wildcards)),
    output:
        touch(PROFILED / "{study}"),
    log:
        "build/logs/profile/{study}.log",
    threads: all_cores
    shell:
        "{PYTHON:q} -m analysis.measure.profile {wildcards.study} --config {SETTINGS:q}"
        " 2> {log}"
