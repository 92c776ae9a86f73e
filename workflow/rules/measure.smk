# Hashes decide what is measured: a study is requested only while some of its samples are missing.
from contextlib import ExitStack
from functools import cache
from typing import NamedTuple

from analysis.base.gpu import GpuError, open_gpus
from analysis.measure.clock import utc_now
from analysis.measure.needs import Provision
from analysis.measure.outcome import outcome
from analysis.measure.plan import (
    lacks_captures,
    leftovers,
    pending,
    refuse_damaged,
    target,
)
from analysis.study import CAPTURE_KINDS

# Beside Snakemake's memory of parameters: neither is ever there without the other.
MARKERS = Path(".snakemake") / "hotpath" / CONFIG.grid.name
MACHINE_MARKS = TABLES / "machines"


# Marks what is pending as measured by this invocation.
MEASURED = MARKERS / "pending"


def profiled(study):
    """Marks a study as profiled by this invocation."""
    return MARKERS / "profiled" / study


def asked(what, marker):
    """What is pending, and since when. As a parameter of a rule it makes the rule run, whatever
    marker an earlier invocation has left."""
    since = marker.stat().st_mtime_ns if marker.exists() else 0
    return f"{' '.join(what)} since {since}"


def measured_now():
    """Markers of what this invocation must measure: studies here, or machines of a cluster."""
    machines = [MACHINE_MARKS / machine.name / "merged" for machine in CONFIG.machines]
    return machines or ([MEASURED] if unfinished().samples else [])


class Unfinished(NamedTuple):
    """What is pending, by study, as a parameter of its rule; where results go; what this machine
    provides."""

    samples: dict = {}
    captures: dict = {}
    where: object = None
    provision: object = None


@cache
def unfinished():
    """What lacks a fresh sample or capture on this machine.

    Only input functions and parameters ask, so targets that measure nothing open no GPU and read
    no results.
    """
    # Nodes of a cluster find out by themselves what is pending on them.
    if CONFIG.machines:
        return Unfinished()
    try:
        return look_for_unfinished()
    except HotpathError as error:
        sys.exit(f"error: {error}")


def look_for_unfinished():
    """What is pending of every study; HotpathError where its results are damaged."""
    samples, captures, grid = {}, {}, CONFIG.grid.name
    with ExitStack() as stack:
        try:
            gpus = stack.enter_context(open_gpus(CONFIG.gpus))
        except GpuError:
            gpus = ()
        provision = Provision.of(gpus, TOOLCHAIN, CONFIG)
        where = target(CONFIG, gpus)
        for name, study in CONFIG.studies.items():
            lacking = [v.name for v in pending(study, where, grid, provision)]
            if lacking or leftovers(study, where, grid):
                samples[name] = asked(lacking, MEASURED)
            if lacks_captures(study, where, grid, provision, CAPTURE_KINDS):
                captures[name] = asked(CAPTURE_KINDS, profiled(name))
            if name in samples or name in captures:
                refuse_damaged(study, where, grid)
    if samples or captures:
        require_room(where.folder)
    return Unfinished(samples, captures, where, provision)


STARTED = utc_now("seconds")


def goes_elsewhere():
    """Whether no site shows what is measured here, as without a GPU and without a machine's name."""
    where = unfinished().where
    return where is not None and where.root.resolve() != CONFIG.results.resolve()


def tell_outcome():
    """Print what a run has measured, or why it has measured nothing."""
    if not unfinished.cache_info().currsize:
        # Nothing was to be measured.
        return
    pending, where = unfinished().samples, unfinished().where
    studies = CONFIG.studies.values()
    logs = Path("build/logs/measure")
    lines = list(outcome(studies, pending, where, STARTED, logs))
    if not lines and pending and goes_elsewhere():
        lines = [
            "nothing was measured: no GPU was found and this machine has no name; with"
            " --config machine=NAME, studies that need no GPU are measured"
        ]
    for line in lines:
        print(line, file=sys.stderr)


onsuccess:
    tell_outcome()


onerror:
    tell_outcome()


def modules_to_run(study, variants):
    """The modules of `variants` that this machine can run."""
    provision = unfinished().provision
    runnable = {
        variant.name
        for variant in variants
        if provision is None or provision.unmet(variant) is None
    }
    return [module for module in modules_of(study) if module.stem in runnable]


def read_to_measure(study, variants):
    """What measuring or profiling variants of a study reads. Samples are added to earlier results,
    so those are no input."""
    code = sources("config/config.yaml", "analysis/**/*.py")
    modules = modules_to_run(study, variants)
    return [*modules, CPU_CACHE, *files_of(study), *SCHEMAS, *code]


def read_by_study(wildcards):
    return read_to_measure(wildcards.study, CONFIG.known[wildcards.study].variants)


def read_by_variant(wildcards):
    study = CONFIG.known[wildcards.study]
    return read_to_measure(study.name, study.companions(wildcards.variant))


# All of them in one process: imports and the start of a process take longer than most cells.
rule measure_pending:
    input:
        lambda _: [
            path
            for study in unfinished().samples
            for path in read_to_measure(study, CONFIG.known[study].variants)
        ],
    output:
        touch(MEASURED),
    log:
        "build/logs/measure/pending.log",
    benchmark:
        "build/benchmarks/measure/pending.tsv"
    # All cores: nothing else may run on the machine during a measurement.
    threads: ALL_CORES
    resources:
        gpu=1,
    params:
        pending=lambda _: unfinished().samples,
        studies=lambda _: list(unfinished().samples),
        names=lambda _: ", ".join(unfinished().samples),
    message:
        "Measuring {params.names}"
    shell:
        "{PYTHON} -m analysis.measure {params.studies} --config {SETTINGS} 2> {log}"


rule measure_variant:
    input:
        read_by_variant,
    output:
        touch(TABLES / "measured" / "{study}" / "{variant}"),
    log:
        "build/logs/measure/{study}/{variant}.log",
    benchmark:
        "build/benchmarks/measure/{study}/{variant}.tsv"
    wildcard_constraints:
        # Only the variants of that study.
        study="|".join(
            f"{name}(?=/({'|'.join(study.variant_names)})$)"
            for name, study in CONFIG.known.items()
        ),
    threads: ALL_CORES
    resources:
        gpu=1,
    message:
        "Measuring {wildcards.study}/{wildcards.variant} again"
    shell:
        "{PYTHON} -m analysis.measure {wildcards.study} --variant {wildcards.variant}"
        " --config {SETTINGS} 2> {log}"
