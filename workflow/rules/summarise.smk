from functools import cache

from analysis.study.source import timed_files
from analysis.results.store.folders import (
    DESCRIPTION,
    PUBLISHED,
    check_machine,
    machine_folders,
    plain_files,
)
from analysis.study import calibrating

# Every study has tables of its own, so that only those are made anew whose results or code have
# changed. They are put together into those that are told of, which have the same names.
NAMES = [
    "summary.csv",
    "ratios.csv",
    "repeats.csv",
    "repeatability.csv",
    "runs.csv",
    "rounds.csv",
    "skipped.csv",
    "model.csv",
    "model_parameters.csv",
    "model_counters.csv",
    "claims.csv",
    "claim_parts.csv",
    "refused.json",
]
SUMMARY_TABLES = [TABLES / name for name in NAMES]
LINKS = TABLES / "links.json"


def tables_of(study):
    return [TABLES / "tables" / study / name for name in NAMES]


# Results are plain inputs, whoever measured them. Missing ones are measured first. Files with
# another name than results have are none: Snakemake would read braces in it.
RESULT_FILES = list(plain_files(RESULTS))


def new_results():
    """Measurements that come first: none where no site shows them."""
    return [] if goes_elsewhere() else measured_now()


def results():
    """What has been measured, on this machine and others, and what others printed."""
    return [str(path) for path in RESULT_FILES]


def results_of(studies):
    """Those of some studies, and of the machines as a whole."""
    return [
        str(path)
        for path in RESULT_FILES
        if path.name == DESCRIPTION
        or path.parent.name in studies
        or (path.parent.name == PUBLISHED and path.stem in studies)
    ]


def result_names(*patterns):
    """Every name below the results that matches, with those that are refused."""
    found = {path for pattern in patterns for path in RESULTS.glob(pattern)}
    return [ascii(str(path)) for path in sorted(found)]


def names_about(studies):
    """Names below the results that say what there is of some studies, and the machines that are
    refused as a whole."""
    patterns = [f"*/{study}{rest}" for study in studies for rest in ("*", "/**/*")]
    return [*result_names("*", *patterns), "refused:", *refused_machines()]


def refused_machines():
    refused = []
    for folder in machine_folders(RESULTS):
        try:
            check_machine(folder)
        except (HotpathError, OSError):
            refused.append(ascii(folder.name))
    return refused


@cache
def code_of_results(*studies):
    """Whether a result is stale depends on the code beside it."""
    timed = {
        str(path.relative_to(workflow.basedir))
        for name in studies
        for variant in CONFIG.known[name].variants
        for path in timed_files(CONFIG.known[name], variant)
    }
    return sorted(timed.union(*map(files_of, studies)))


def links_of(study):
    """What the model's predictions of a study need; one without any waits for no fit."""
    return [LINKS] if CONFIG.known[study].has_link else []


CALIBRATING = calibrating(CONFIG.known)
SUMMARISING = [
    *SCHEMAS,
    *CORE,
    *sources("analysis/results/*.py", "analysis/results/model/*.py"),
    *sources("analysis/results/store/*.py", "analysis/results/tables/*.py"),
]


rule fit_links:
    input:
        lambda _: new_results(),
        results_of(CALIBRATING),
        code_of_results(*CALIBRATING),
        SUMMARISING,
    output:
        LINKS,
    log:
        "build/logs/fit_links.log",
    benchmark:
        "build/benchmarks/fit_links.tsv"
    # Other jobs wait for it.
    priority: 1
    resources:
        mem_mb=1000,
    params:
        results=str(RESULTS),
        # Asked again when the job starts: by then there may be new ones.
        files=lambda _: digest(names_about(CALIBRATING)),
    message:
        "Fitting the link of every machine"
    shell:
        "{PYTHON} -m analysis.results.tables.links --results {params.results} --out {output} 2> {log}"


rule summarise_study:
    input:
        lambda _: new_results(),
        lambda w: results_of([w.study]),
        lambda w: code_of_results(w.study),
        SUMMARISING,
        links=lambda w: links_of(w.study),
    output:
        tables_of("{study}"),
    log:
        "build/logs/summarise/{study}.log",
    benchmark:
        "build/benchmarks/summarise/{study}.tsv"
    resources:
        mem_mb=1000,
    params:
        results=str(RESULTS),
        out=lambda w: TABLES / "tables" / w.study,
        links=lambda w: [f"--links {path}" for path in links_of(w.study)],
        files=lambda w: digest([*names_about([w.study]), *files_of(w.study)]),
    message:
        "Summarising {wildcards.study}"
    shell:
        "{PYTHON} -m analysis.results.tables.of_study {wildcards.study} --results {params.results}"
        " {params.links} --out {params.out} 2> {log}"


rule summarise:
    input:
        # Those of studies that are gone are only here.
        results(),
        SUMMARISING,
        [table for study in CONFIG.known for table in tables_of(study)],
        links=LINKS,
    output:
        SUMMARY_TABLES,
    log:
        "build/logs/summarise.log",
    benchmark:
        "build/benchmarks/summarise.tsv"
    resources:
        mem_mb=1000,
    params:
        results=str(RESULTS),
        tables=str(TABLES),
        files=lambda _: digest([*CONFIG.known, *result_names("**/*")]),
    message:
        "Summarising the results of every machine"
    shell:
        "{PYTHON} -m analysis.results.tables.together --tables {params.tables}/tables"
        " --links {input.links} --results {params.results} --out {params.tables} 2> {log}"
