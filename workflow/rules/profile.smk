# Captures counters and timelines, apart from timing: the headline case of each study, once per source.


rule profile_study:
    input:
        measured_now,
        study_inputs,
    output:
        touch(profiled("{study}")),
    log:
        "build/logs/profile/{study}.log",
    benchmark:
        "build/benchmarks/profile/{study}.tsv"
    threads: all_cores
    resources:
        gpu=1,
    params:
        python=PYTHON,
        settings=settings,
        pending=capture_request,
    message:
        "Profiling {wildcards.study}"
    shell:
        "{params.python:q} -m analysis.measure.profile {wildcards.study} --config {params.settings:q}"
        " 2> {log}"
