# Counters and timelines, separate from timing: the headline case of each study, once per source.


def profiled(study):
    """Marks a study as profiled; removed as soon as a capture of the current source is missing."""
    return TABLES / "profiled" / f"{study}.done"


def profiled_now():
    """Markers of the studies that this invocation must profile."""
    return [profiled(study) for study in UNPROFILED]


for study in UNPROFILED:
    profiled(study).unlink(missing_ok=True)


rule profile_study:
    input:
        measured_now(),
        read_to_measure,
    output:
        touch(profiled("{study}")),
    log:
        "build/logs/profile/{study}.log",
    benchmark:
        "build/benchmarks/profile/{study}.tsv"
    threads: workflow.cores
    resources:
        gpu=1,
    message:
        "Profiling {wildcards.study}"
    shell:
        "{PYTHON} -m analysis.profile {wildcards.study} --config {SETTINGS} 2>&1 | tee {log}"
