# Makes the tables of each study from its results, and joins them. Every study has its tables, so that
# a change of its results or code makes only those anew.
from analysis.results.store.runs import PUBLISHED, plain_files
from analysis.results.tables.rows import TABLES as REGISTRY
from analysis.study import calibrating

NAMES = [*(f"{name}.csv" for name in REGISTRY), "refused.json"]
SUMMARY_TABLES = [TABLES / name for name in NAMES]
OF_STUDIES = TABLES / "tables"
LINKS = TABLES / "links.json"
# Results are plain inputs, from any machine. Files whose names no result can have are left out,
# because Snakemake would expand braces in them.
RESULT_FILES = list(plain_files(RESULTS))
CALIBRATING = calibrating(CONFIG.known)
SUMMARISING = [
    *CORE,
    *sources("analysis/results/*.py", "analysis/results/model/*.py"),
    *sources("analysis/results/store/*.py", "analysis/results/tables/*.py"),
]


def tables_of(study):
    return [OF_STUDIES / study / name for name in NAMES]


def results_of(studies):
    """Results of some studies on all machines, and what was published of them."""
    study_in = lambda path: (
        path.stem if path.parent.name == PUBLISHED else path.parent.name
    )
    return [path for path in RESULT_FILES if study_in(path) in studies]


def names_below_results(*patterns):
    """All names that match, including those of refused files. As parameters are evaluated again
    when a job starts, new results are among them."""
    found = {path for pattern in patterns for path in RESULTS.glob(pattern)}
    return [ascii(str(path)) for path in sorted(found)]


def digest_of_studies(studies):
    """A hash of the names of all files of some studies and of their results."""
    patterns = [f"*/{study}{rest}" for study in studies for rest in ("*", "*/**/*")]
    files = [path for study in studies for path in files_of(study)]
    return digest([*names_below_results("*", *patterns), *files])


def results_digest(wildcards):
    return digest([*CONFIG.known, *names_below_results("**/*")])


def links_of_study(wildcards):
    """The fitted links, if the link model predicts the study."""
    return [LINKS] if study_of(wildcards).has_link else []


rule fit_links:
    input:
        new_results,
        results_of(CALIBRATING),
        [files_of(study) for study in CALIBRATING],
        SUMMARISING,
    output:
        LINKS,
    log:
        "build/logs/fit_links.log",
    priority: 10**9  # Other jobs wait for it.
    params:
        files=lambda wildcards: digest_of_studies(CALIBRATING),
    shell:
        "{PYTHON:q} -m analysis.results.tables.links --results {RESULTS} --out {output} 2> {log}"


rule summarise_study:
    input:
        new_results,
        lambda wildcards: results_of([wildcards.study]),
        lambda wildcards: files_of(wildcards.study),
        SUMMARISING,
        links=links_of_study,
    output:
        tables_of("{study}"),
    log:
        "build/logs/summarise/{study}.log",
    params:
        links=lambda wildcards: [
            f"--links {path}" for path in links_of_study(wildcards)
        ],
        files=lambda wildcards: digest_of_studies([wildcards.study]),
    shell:
        "{PYTHON:q} -m analysis.results.tables.of_study {wildcards.study} --results {RESULTS}"
        " {params.links} --out {OF_STUDIES}/{wildcards.study} 2> {log}"


rule summarise:
    input:
        # Results of removed studies are only here.
        RESULT_FILES,
        SUMMARISING,
        [table for study in CONFIG.known for table in tables_of(study)],
        links=LINKS,
    output:
        SUMMARY_TABLES,
    log:
        "build/logs/summarise.log",
    params:
        files=results_digest,
    shell:
        "{PYTHON:q} -m analysis.results.tables.of_study --links {input.links}"
        " --results {RESULTS} --out {TABLES} 2> {log}"
