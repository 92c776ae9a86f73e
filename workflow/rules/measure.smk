# Hashes decide what is measured: a study is requested only while some of its samples are missing.
from contextlib import ExitStack

from analysis.gpu import GpuError, open_gpus
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
    return machines or ([MEASURED] if PENDING else [])


def unfinished():
    """By study, the variants that lack a fresh sample on this machine, and the kinds of captures,
    where one is lacking; where the results go; and what this machine provides."""
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
    return samples, captures, where, provision


try:
    # Nodes of a cluster find out by themselves what is pending on them.
    PENDING, UNPROFILED, WHERE, PROVISION = (
        ({}, {}, None, None) if CONFIG.machines else unfinished()
    )
except HotpathError as error:
    sys.exit(f"error: {error}")


STARTED = utc_now("seconds")


def goes_elsewhere():
    """Whether no site shows what is measured here, as without a GPU and without a machine's name."""
    return WHERE is not None and WHERE.root.resolve() != CONFIG.results.resolve()


def tell_outcome():
    """Print what a run has measured, or why it has measured nothing."""
    studies = CONFIG.studies.values()
    logs = Path("build/logs/measure")
    lines = list(outcome(studies, PENDING, WHERE, STARTED, logs))
    if not lines and PENDING and goes_elsewhere():
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
    runnable = {
        variant.name
        for variant in variants
        if PROVISION is None or PROVISION.unmet(variant) is None
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
        [
            path
            for study in PENDING
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
        pending=lambda _: PENDING,
        studies=list(PENDING),
    message:
        f"Measuring {', '.join(PENDING)}"
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
