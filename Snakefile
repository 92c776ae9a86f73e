# The targets, of which `site` is the default. Every target makes what it needs.
import sys

# Snakemake reads any number; `load_config` then refuses one that is too long.
sys.set_int_max_str_digits(0)


configfile: "config/config.yaml"


# Built from env/container.def; used with `--software-deployment-method apptainer`.
container: "build/hotpath.sif"


include: "workflow/rules/common.smk"
include: "workflow/functions/build.smk"
include: "workflow/functions/measure.smk"
include: "workflow/functions/summarise.smk"
include: "workflow/rules/build.smk"
include: "workflow/rules/derive.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/profile.smk"
include: "workflow/rules/summarise.smk"
include: "workflow/rules/report.smk"


if CONFIG.machines:

    include: "workflow/functions/cluster.smk"
    include: "workflow/rules/cluster.smk"


rule site:
    default_target: True
    input:
        new_results,
        WHOLE_SITE,
    message:
        "The site is at {SITE}/index.html"


rule build:
    input:
        [module for study in CONFIG.studies for module in modules_of(study)],
        CPU_CACHE,
        CODE_TABLES if CONFIG.studies == SHOWN else [],
        derived(CONFIG.studies),
        kept_marks,


rule measure:
    input:
        measured_now,


rule profile:
    input:
        profiled_now,


rule summary:
    input:
        new_results,
        SUMMARY_TABLES,
