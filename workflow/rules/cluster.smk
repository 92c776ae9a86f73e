# Measures the machines of a cluster, each on a node; everything else runs where snakemake was started.
import math

MACHINES = {machine.name: machine for machine in CONFIG.machines}
BUILD_MINUTES = 30


def measuring_minutes():
    """Time limit of a run: twice the budgets of its studies, and the time to build them."""
    effort = CONFIG.grid.rounds / int(config["grids"]["default"]["rounds"])
    seconds = sum(study.budget_s for study in CONFIG.studies.values()) * max(1, effort)
    return BUILD_MINUTES + math.ceil(2 * seconds / 60)


def machine_of(wildcards):
    return MACHINES[wildcards.machine]


def run_settings(wildcards):
    """The configuration for one run. More runs of its machine, or other machines, do not change it."""
    entries = {entry["name"]: {**entry, "runs": 1} for entry in config["machines"]}
    return json.dumps({**config, "machines": [entries[wildcards.machine]]})


rule measure_machine:
    input:
        [files_of(study) for study in CONFIG.studies],
        sources("Snakefile", "workflow/**/*.*", "config/*.yaml", "analysis/**/*.*"),
    output:
        touch(MACHINE_MARKS / "{machine}" / "{run}.done"),
    log:
        "build/logs/machines/{machine}/{run}.log",
    resources:
        slurm_partition=lambda wildcards: machine_of(wildcards).partition or "",
        constraint=lambda wildcards: machine_of(wildcards).constraint or "",
        gpu=lambda wildcards: machine_of(wildcards).gpus,
        mem_mb=lambda wildcards: machine_of(wildcards).mem_mb or "",
        runtime=measuring_minutes(),
        nodes=1,
        # The whole node with all of its CPUs.
        slurm_extra="'--exclusive'",
        cpus_per_task=-1,
    params:
        settings=run_settings,
    shell:
        "{PYTHON:q} -m analysis.measure.cluster measure {wildcards.machine} {params.settings:q}"
        " {wildcards.run} > {log} 2>&1"


rule merge_machine:
    input:
        lambda wildcards: [
            MACHINE_MARKS / wildcards.machine / f"{run + 1}.done"
            for run in range(machine_of(wildcards).runs)
        ],
        sources("analysis/**/*.py"),
    output:
        touch(MACHINE_MARKS / "{machine}" / "merged"),
    log:
        "build/logs/machines/{machine}/merge.log",
    shell:
        "{PYTHON:q} -m analysis.measure.cluster merge {wildcards.machine} {SETTINGS:q} 2> {log}"


workflow.localrules(*({rule.name for rule in workflow.rules} - {"measure_machine"}))
