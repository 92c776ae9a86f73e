# The whole site, from tables, sources and pages. It needs neither a GPU nor a network.


rule report:
    input:
        SUMMARY_TABLES,
        TABLES / "resources.csv",
        sources("docs/**/*.*", "analysis/**/*.py", "results/published/*.csv"),
    output:
        SITE / "index.html",
    log:
        "build/logs/report.log",
    benchmark:
        "build/benchmarks/report.tsv"
    resources:
        mem_mb=2000,
    params:
        site=SITE,
        pages=digest(sources("docs/**/*.*")),
    message:
        "Building the site"
    shell:
        "{PYTHON} -m analysis.report --tables {TABLES} --results {RESULTS} --modules {MODULES}"
        " --site {params.site} > {log} 2>&1 || (cat {log}; exit 1)"
