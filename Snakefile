# The targets, of which `site` is the default. Every target makes what it needs.
import sys

# Snakemake reads any number; `load_config` then refuses one that is too long.
sys.set_int_max_str_digits(0)
TARGETS = ["build", "measure", "profile", "site", "summary"]


configfile: "config/config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/messages.smk"
include: "workflow/rules/build.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/summarise.smk"
include: "workflow/rules/report.smk"


if CONFIG.machines:

    include: "workflow/rules/cluster.smk"


rule site:
    default_target: True
    input:
        new_results,
        WHOLE_SITE,


rule build:
    input:
        [module for study in CONFIG.studies for module in modules_of(study)],
        CPU_CACHE,
        CODE_TABLES if CONFIG.studies == SHOWN else [],
        kept_marks,


rule measure:
    input:
        measured_now,


rule profile:
    input:
        lambda wildcards: [PROFILED / study for study in unfinished()[1]],


rule summary:
    input:
        new_results,
        SUMMARY_TABLES,
