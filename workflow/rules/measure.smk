# Measures what lacks fresh samples. Rules that need no samples have a higher priority: nothing else
# then waits during a measurement, and Snakemake checks waiting jobs at least once a second.


# On a new machine, reading PyTorch from the disk and the first access to memory take seconds, so
# both happen while modules compile.
rule read_ahead:
    input:
        ancient(sources("config/config.yaml", "analysis/**/*.py")),
    output:
        touch(READ_AHEAD),
    log:
        "build/logs/read_ahead.log",
    benchmark:
        "build/benchmarks/read_ahead.tsv"
    priority: 1000
    resources:
        mem_mb=2000,
    params:
        python=PYTHON,
    message:
        "Reading the libraries and touching the memory that measuring needs"
    shell:
        "nice {params.python:q} -m analysis.measure.read_ahead 2> {log}"


# One process for all studies: imports and the start of a process take longer than most cells.
rule measure_pending:
    input:
        pending_inputs,
    output:
        touch(MEASURED),
    log:
        "build/logs/measure/pending.log",
    benchmark:
        "build/benchmarks/measure/pending.tsv"
    threads: all_cores
    resources:
        gpu=1,
    params:
        python=PYTHON,
        settings=settings,
        pending=pending_requests,
        studies=pending_studies,
        names=pending_names,
    message:
        "Measuring {params.names}"
    shell:
        "{params.python:q} -m analysis.measure {params.studies} --config {params.settings:q}"
        " 2> {log}"


rule measure_variant:
    input:
        variant_inputs,
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
    threads: all_cores
    resources:
        gpu=1,
    params:
        python=PYTHON,
        settings=settings,
    message:
        "Measuring {wildcards.study}/{wildcards.variant} again"
    shell:
        "{params.python:q} -m analysis.measure {wildcards.study} --variant {wildcards.variant}"
        " --config {params.settings:q} 2> {log}"
