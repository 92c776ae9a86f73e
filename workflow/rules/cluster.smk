# Machines of a cluster. Their nodes measure; all else is done where snakemake was started.
import math

MACHINES = {machine.name: machine for machine in CONFIG.machines}
BUILD_MINUTES = 30


def minutes():
    """What a run may take: the budgets of its studies, twice, and what it takes to build them."""
    effort = CONFIG.grid.rounds / int(config["grids"]["default"]["rounds"])
    seconds = sum(study.budget_s for study in CONFIG.studies.values()) * max(1, effort)
    return BUILD_MINUTES + math.ceil(2 * seconds / 60)


def gpus(wildcards):
    """GPUs are asked for only where a study needs one."""
    variants = (v for study in CONFIG.studies.values() for v in study.variants)
    return MACHINES[wildcards.machine].gpus if any(v.on_gpu for v in variants) else 0


def of(name):
    """A setting of the machine, or what says nothing where it has none."""
    return lambda wildcards: getattr(MACHINES[wildcards.machine], name) or ""


rule measure_machine:
    input:
        [files_of(study) for study in CONFIG.studies],
        SCHEMAS,
        sources("Snakefile", "workflow/**/*.*", "config/*.yaml", "analysis/**/*.*"),
    output:
        touch(MACHINE_MARKS / "{machine}" / "{run}.done"),
    log:
        "build/logs/machines/{machine}/{run}.log",
    benchmark:
        "build/benchmarks/machines/{machine}/{run}.tsv"
    resources:
        slurm_partition=of("partition"),
        constraint=of("constraint"),
        gpu=gpus,
        mem_mb=of("mem_mb"),
        runtime=minutes(),
        nodes=1,
        # The whole node, and as many of its CPUs as there are.
        slurm_extra="'--exclusive'",
        cpus_per_task=-1,
    message:
        "Measuring {wildcards.machine}, run {wildcards.run}"
    shell:
        "{PYTHON} -m analysis.measure.cluster measure {wildcards.machine} {wildcards.run}"
        " --config {SETTINGS} > {log} 2>&1"


rule merge_machine:
    input:
        lambda w: [
            MACHINE_MARKS / w.machine / f"{run + 1}.done"
            for run in range(MACHINES[w.machine].runs)
        ],
        SCHEMAS,
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
    message:
        "Merging the runs of {wildcards.machine} into the results"
    shell:
        "{PYTHON} -m analysis.measure.cluster merge {wildcards.machine} --config {SETTINGS} 2> {log}"


# Nodes measure; all else is done where snakemake was started.
workflow.localrules(*({rule.name for rule in workflow.rules} - {"measure_machine"}))
