# The whole site, from tables, sources and pages. It needs neither a GPU nor a network.


rule report:
    input:
        SUMMARY_TABLES,
        CODE_TABLES,
        derived(SHOWN),
        # Pages offer the samples and show the sources, and studies draw charts of their own.
        results(),
        STUDIES,
        SCHEMAS,
        # The reference shows settings, the drawing of the package its layers.
        "config/config.yaml",
        "pyproject.toml",
        sources("docs/**/*.*", "analysis/**/*.py"),
    output:
        SITE / "index.html",
    log:
        "build/logs/report.log",
    benchmark:
        "build/benchmarks/report.tsv"
    resources:
        mem_mb=2000,
    params:
        tables=str(TABLES),
        results=str(RESULTS),
        modules=str(MODULES),
        site=str(SITE),
        files=lambda _: digest(
            [*sources("docs/**/*.*"), *STUDIES, *result_names("**/*")]
        ),
    message:
        "Building the site"
    shell:
        "{PYTHON} -m analysis.report --tables {params.tables} --results {params.results}"
        " --modules {params.modules} --site {params.site} > {log} 2>&1"
        " && echo site: {output}"
