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


def marker(study):
    """Marks a study as measured by this invocation."""
    return MARKERS / "measured" / study


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
    return machines or [marker(study) for study in PENDING]


def unfinished():
    """By study, the variants that lack a fresh sample on this machine, and the kinds of captures,
    where one is lacking; and where the results go."""
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
                samples[name] = asked(lacking, marker(name))
            if lacks_captures(study, where, grid, provision, CAPTURE_KINDS):
                captures[name] = asked(CAPTURE_KINDS, profiled(name))
            if name in samples or name in captures:
                refuse_damaged(study, where, grid)
    if samples or captures:
        require_room(where.folder)
    return samples, captures, where


try:
    # Nodes of a cluster find out by themselves what is pending on them.
    PENDING, UNPROFILED, WHERE = ({}, {}, None) if CONFIG.machines else unfinished()
except HotpathError as error:
    sys.exit(f"error: {error}")


# For the time that is left.
TOGETHER = " ".join(PENDING)
STARTED = utc_now("seconds")


def tell_outcome():
    """What a run ends with."""
    studies = CONFIG.studies.values()
    for line in outcome(studies, WHERE, STARTED, Path("build/logs/measure")):
        print(line, file=sys.stderr)


onsuccess:
    tell_outcome()


onerror:
    tell_outcome()


def read_to_measure(wildcards):
    """What measuring or profiling a study reads. It adds to earlier results, so they are no input."""
    code = sources("config/config.yaml", "analysis/**/*.py")
    return [
        *modules_of(wildcards.study),
        CPU_CACHE,
        *files_of(wildcards.study),
        *SCHEMAS,
        *code,
    ]


rule measure_study:
    input:
        read_to_measure,
    output:
        touch(marker("{study}")),
    log:
        "build/logs/measure/{study}.log",
    benchmark:
        "build/benchmarks/measure/{study}.tsv"
    # All cores: nothing else may run on the machine during a measurement.
    threads: ALL_CORES
    resources:
        gpu=1,
    params:
        pending=lambda w: PENDING.get(w.study, ""),
    message:
        "Measuring {wildcards.study}"
    shell:
        "{PYTHON} -m analysis.measure {wildcards.study} --config {SETTINGS}"
        " --among {TOGETHER} --since {STARTED} 2> {log}"


rule measure_variant:
    input:
        read_to_measure,
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
