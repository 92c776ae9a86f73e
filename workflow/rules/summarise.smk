# Makes the tables build/*.csv from all results.
from analysis.results.store.runs import plain_files
from analysis.results.tables.rows import TABLES as REGISTRY

SUMMARY_TABLES = [
    TABLES / name for name in [*(f"{name}.csv" for name in REGISTRY), "refused.json"]
]
# Results are plain inputs, from any machine. Files whose names no result can have are left out,
# because Snakemake would expand braces in them.
RESULT_FILES = list(plain_files(RESULTS))
STUDY_FILES = sorted({path for study in CONFIG.known for path in files_of(study)})
SUMMARISING = [
    *CORE,
    *sources("analysis/results/*.py", "analysis/results/model/*.py"),
    *sources("analysis/results/store/*.py", "analysis/results/tables/*.py"),
]


def names_of_inputs(wildcards):
    """A hash of the names of all files of studies and results, including those of refused files. As
    parameters are evaluated again when a job starts, new results are among them."""
    results = [ascii(str(path)) for path in sorted(RESULTS.glob("**/*"))]
    return digest([*CONFIG.known, *STUDY_FILES, *results])


# One process for all studies: imports take longer than the tables of most.
rule summarise:
    input:
        new_results,
        RESULT_FILES,
        STUDY_FILES,
        SUMMARISING,
    output:
        SUMMARY_TABLES,
    log:
        "build/logs/summarise.log",
    params:
        files=names_of_inputs,
    shell:
        "{PYTHON:q} -m analysis.results.tables.of_study --results {RESULTS} --out {TABLES} 2> {log}"
