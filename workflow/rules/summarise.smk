# Results are plain inputs, whoever measured them. Missing ones are measured first.
SUMMARY_TABLES = [
    TABLES / "summary.csv",
    TABLES / "ratios.csv",
    TABLES / "repeats.csv",
    TABLES / "runs.csv",
    TABLES / "skipped.csv",
    TABLES / "model.csv",
    TABLES / "model_parameters.csv",
    TABLES / "model_counters.csv",
    TABLES / "claims.csv",
    TABLES / "claim_parts.csv",
    TABLES / "refused.json",
]


rule summarise:
    input:
        measured_now(),
        profiled_now(),
        sources(f"{RESULTS}/**/*.csv", f"{RESULTS}/**/*.json"),
        # Whether a result is stale depends on the current code.
        sources(
            "kernels/**/*.*",
            "allocator/**/*.*",
            "analysis/*.py",
            "analysis/claims/*.py",
            "analysis/model/*.py",
            "analysis/store/*.py",
            "analysis/study/*.py",
            "analysis/tables/*.py",
        ),
    output:
        SUMMARY_TABLES,
    log:
        "build/logs/summarise.log",
    benchmark:
        "build/benchmarks/summarise.tsv"
    resources:
        mem_mb=2000,
    params:
        results=digest(sources(f"{RESULTS}/**/*.csv", f"{RESULTS}/**/*.json")),
    message:
        "Summarising the results of every machine"
    shell:
        "{PYTHON} -m analysis.tables --results {RESULTS} --out {TABLES} 2>&1 | tee {log}"
