# Hashes decide what is measured: a study is requested only while some of its samples are missing.
from contextlib import ExitStack

from analysis.gpu import GpuError, open_gpu
from analysis.measure.needs import Provision
from analysis.measure.plan import lacks_captures, leftovers, pending, target
from analysis.study import CAPTURE_KINDS


def unfinished():
    """Studies with a variant that lacks a fresh sample of some case on this machine, and studies
    with a variant that lacks a capture of its current source."""
    with ExitStack() as stack:
        try:
            gpu = stack.enter_context(open_gpu(CONFIG.gpu))
        except GpuError:
            gpu = None
        provision = Provision.of(gpu, TOOLCHAIN, CONFIG)
        here = target(CONFIG, gpu), CONFIG.grid.name, provision
        studies = CONFIG.studies.values()
        return (
            [
                study.name
                for study in studies
                if pending(study, *here) or leftovers(study, *here[:2])
            ],
            [
                study.name
                for study in studies
                if lacks_captures(study, *here, CAPTURE_KINDS)
            ],
        )


def marker(study):
    """Marks a study as measured; removed as soon as any of its samples is missing."""
    return TABLES / "measured" / f"{study}.done"


def measured_now():
    """Markers of the studies that this invocation must measure."""
    return [marker(study) for study in PENDING]


try:
    PENDING, UNPROFILED = unfinished()
except HotpathError as error:
    raise WorkflowError(str(error)) from None
for study in PENDING:
    marker(study).unlink(missing_ok=True)


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
    threads: workflow.cores
    resources:
        gpu=1,
    message:
        "Measuring {wildcards.study}"
    shell:
        "{PYTHON} -m analysis.measure {wildcards.study} --config {SETTINGS} 2>&1 | tee {log}"


rule measure_variant:
    input:
        read_to_measure,
    output:
        touch(TABLES / "measured" / "{study}" / "{variant}"),
    log:
        "build/logs/measure/{study}/{variant}.log",
    benchmark:
        "build/benchmarks/measure/{study}/{variant}.tsv"
    threads: workflow.cores
    resources:
        gpu=1,
    message:
        "Measuring {wildcards.study}/{wildcards.variant} again"
    shell:
        "{PYTHON} -m analysis.measure {wildcards.study} --variant {wildcards.variant}"
        " --config {SETTINGS} 2>&1 | tee {log}"
