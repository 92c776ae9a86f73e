# Counters and timelines, separate from timing: the headline case of each study, once per source.


def profiled_now():
    """Markers of the studies that this invocation must profile."""
    return [profiled(study) for study in unfinished().captures]


rule profile_study:
    input:
        lambda _: measured_now(),
        read_by_study,
    output:
        touch(profiled("{study}")),
    log:
        "build/logs/profile/{study}.log",
    benchmark:
        "build/benchmarks/profile/{study}.tsv"
    threads: ALL_CORES
    resources:
        gpu=1,
    params:
        pending=lambda w: unfinished().captures.get(w.study, ""),
    message:
        "Profiling {wildcards.study}"
    shell:
        "{PYTHON} -m analysis.measure.profile {wildcards.study} --config {SETTINGS} 2> {log}"
