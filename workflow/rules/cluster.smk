# Measures the machines of a cluster, each on a node; everything else runs where snakemake was started.


rule measure_machine:
    input:
        [files_of(study) for study in CONFIG.studies],
        sources("Snakefile", "workflow/**/*.*", "config/*.yaml", "analysis/**/*.*"),
    output:
        touch(MACHINE_MARKS / "{machine}" / "{run}.done"),
    log:
        "build/logs/machines/{machine}/{run}.log",
    benchmark:
        "build/benchmarks/machines/{machine}/{run}.tsv"
    resources:
        slurm_partition=partition,
        constraint=constraint,
        gpu=gpus,
        mem_mb=memory_mb,
        runtime=measuring_minutes(),
        nodes=1,
        # The whole node with all of its CPUs.
        slurm_extra="'--exclusive'",
        cpus_per_task=-1,
    params:
        python=PYTHON,
        settings=run_settings,
    message:
        "Measuring {wildcards.machine}, run {wildcards.run}"
    shell:
        "{params.python:q} -m analysis.measure.cluster measure {wildcards.machine} {wildcards.run}"
        " --config {params.settings:q} > {log} 2>&1"


rule merge_machine:
    input:
        run_marks,
        CORE,
        sources("analysis/**/*.py"),
    output:
        touch(MACHINE_MARKS / "{machine}" / "merged"),
    log:
        "build/logs/machines/{machine}/merge.log",
    benchmark:
        "build/benchmarks/machines/{machine}/merge.tsv"
    resources:
        mem_mb=1000,
    params:
        python=PYTHON,
        settings=settings,
    message:
        "Merging the runs of {wildcards.machine} into the results"
    shell:
        "{params.python:q} -m analysis.measure.cluster merge {wildcards.machine}"
        " --config {params.settings:q} 2> {log}"


workflow.localrules(*({rule.name for rule in workflow.rules} - {"measure_machine"}))
