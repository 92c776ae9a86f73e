# Resources and inputs of the measurements on a cluster.
import math

MACHINES = {machine.name: machine for machine in CONFIG.machines}
BUILD_MINUTES = 30


def measuring_minutes():
    """Time limit of a run: twice the budgets of its studies, and the time to build them."""
    effort = CONFIG.grid.rounds / int(config["grids"]["default"]["rounds"])
    seconds = sum(study.budget_s for study in CONFIG.studies.values()) * max(1, effort)
    return BUILD_MINUTES + math.ceil(2 * seconds / 60)


def gpus(wildcards):
    """Number of GPUs to request: none if no study needs one."""
    variants = (v for study in CONFIG.studies.values() for v in study.variants)
    return MACHINES[wildcards.machine].gpus if any(v.on_gpu for v in variants) else 0


def partition(wildcards):
    return MACHINES[wildcards.machine].partition or ""


def constraint(wildcards):
    return MACHINES[wildcards.machine].constraint or ""


def memory_mb(wildcards):
    return MACHINES[wildcards.machine].mem_mb or ""


def run_marks(wildcards):
    """Marks of the runs of a machine."""
    runs = MACHINES[wildcards.machine].runs
    return [
        MACHINE_MARKS / wildcards.machine / f"{run + 1}.done" for run in range(runs)
    ]


def run_settings(wildcards):
    """The configuration for one run. More runs of its machine, or other machines, do not change it."""
    [entry] = [
        entry for entry in config["machines"] if entry["name"] == wildcards.machine
    ]
    machine = {key: value for key, value in entry.items() if key != "runs"}
    return json.dumps({**config, "machines": [machine]})
