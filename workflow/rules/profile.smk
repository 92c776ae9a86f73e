# Counters and timelines, apart from timing: the headline case of each study, once a source.


def profiled(study):
    """Says that a study was profiled; untrue as soon as a capture of today's source is missing."""
    return TABLES / "profiled" / f"{study}.done"


def profiled_now():
    """Markers of the studies that this invocation has to profile."""
    return [profiled(study) for study in UNPROFILED]


for study in UNPROFILED:
    profiled(study).unlink(missing_ok=True)


rule profile_study:
    input:
        measured_now(),
        lambda w: modules_of(w.study),
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
