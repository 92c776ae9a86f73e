from analysis.store.folders import plain_files

# Results are plain inputs, whoever measured them. Missing ones are measured first.
SUMMARY_TABLES = [
    TABLES / "summary.csv",
    TABLES / "ratios.csv",
    TABLES / "repeats.csv",
    TABLES / "repeatability.csv",
    TABLES / "runs.csv",
    TABLES / "skipped.csv",
    TABLES / "model.csv",
    TABLES / "model_parameters.csv",
    TABLES / "model_counters.csv",
    TABLES / "claims.csv",
    TABLES / "claim_parts.csv",
    TABLES / "refused.json",
]


def results():
    """What has been measured, on this machine and others, and what others printed. Files with
    another name than results have are none: Snakemake would read braces in it."""
    return [str(path) for path in plain_files(RESULTS)]


def result_names():
    """Every name below the results, with those that are refused."""
    return [ascii(str(path)) for path in sorted(RESULTS.rglob("*"))]


rule summarise:
    input:
        measured_now(),
        profiled_now(),
        results(),
        STUDIES,
        SCHEMAS,
        CORE,
        sources("analysis/model/*.py", "analysis/store/*.py", "analysis/tables/*.py"),
        sources("analysis/measure/__init__.py", "analysis/measure/throttling.py"),
    output:
        SUMMARY_TABLES,
    log:
        "build/logs/summarise.log",
    benchmark:
        "build/benchmarks/summarise.tsv"
    resources:
        mem_mb=2000,
    params:
        results=str(RESULTS),
        tables=str(TABLES),
        # Asked again when the job starts: by then there may be new ones.
        files=lambda _: digest(result_names()),
    message:
        "Summarising the results of every machine"
    shell:
        "{PYTHON} -m analysis.tables --results {params.results} --out {params.tables} 2> {log}"
