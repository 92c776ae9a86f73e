# The targets a person can ask for. The default is `site`, and everything before it.
configfile: "config/config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/build.smk"
include: "workflow/rules/derive.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/profile.smk"
include: "workflow/rules/summarise.smk"
include: "workflow/rules/report.smk"


if CONFIG.machines:

    include: "workflow/rules/cluster.smk"


rule site:
    default_target: True
    input:
        lambda _: new_results(),
        WHOLE,
    message:
        "The site is at {SITE}/index.html"


rule build:
    input:
        [module for study in CONFIG.studies for module in modules_of(study)],
        CPU_CACHE,
        CODE_TABLES if CONFIG.studies == SHOWN else [],
        derived(CONFIG.studies),
        to_keep(),


rule measure:
    input:
        lambda _: measured_now(),


rule profile:
    input:
        lambda _: profiled_now(),


rule summary:
    input:
        lambda _: measured_now(),
        SUMMARY_TABLES,
