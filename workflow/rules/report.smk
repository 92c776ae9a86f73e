# Draws charts and builds the site from tables, sources and pages, without a GPU or a network. Charts
# are drawn by study: a changed page draws none, and a changed study draws only its charts.


rule chart_engine:
    input:
        DRAWING,
    output:
        ENGINE,
    log:
        "build/logs/chart_engine.log",
    benchmark:
        "build/benchmarks/chart_engine.tsv"
    priority: 1000  # Otherwise it is the last job before the measurement, and alone.
    resources:
        mem_mb=1000,
    params:
        python=PYTHON,
        out=output_folder,
        versions=chart_packages,
    message:
        "Writing the chart library"
    shell:
        "{params.python:q} -m analysis.site.charts.engine --out {params.out} 2> {log}"


rule charts:
    input:
        study_tables,
        derived_of_study,
        # Captures are drawn, and code decides whether they are stale.
        study_results,
        files_of_study,
        widget_results,
        DRAWING,
    output:
        directory(CHARTS / "{study}"),
    log:
        "build/logs/charts/{study}.log",
    benchmark:
        "build/benchmarks/charts/{study}.tsv"
    resources:
        mem_mb=1000,
    params:
        nice=nice,
        python=PYTHON,
        results=RESULTS,
        tables=tables_folder,
        derived=derived_folder,
        files=study_names_digest,
    message:
        "Drawing the charts of {wildcards.study}"
    shell:
        "{params.nice} {params.python:q} -m analysis.site.charts {wildcards.study}"
        " --tables {params.tables} --derived {params.derived} --results {params.results}"
        " --out {output} 2> {log}"


rule common:
    input:
        SUMMARY_TABLES,
        CODE_TABLES,
        derived(SHOWN),
        results(),
        STUDIES,
        DRAWING,
        "docs/mkdocs.yml",
        sources("analysis/site/*.py", "analysis/site/pages/*.py"),
    output:
        directory(COMMON_CHARTS),
        SAMPLES,
    log:
        "build/logs/common.log",
    benchmark:
        "build/benchmarks/common.tsv"
    resources:
        mem_mb=2000,
    params:
        python=PYTHON,
        tables=TABLES,
        charts=CHARTS,
        results=RESULTS,
        files=results_digest,
    message:
        "Drawing the charts about all studies, and joining all samples"
    shell:
        "{params.python:q} -m analysis.site.pages.common --tables {params.tables}"
        " --results {params.results} --charts {params.charts} --samples {params.tables} 2> {log}"


rule report:
    input:
        SUMMARY_TABLES,
        CODE_TABLES,
        ENGINE,
        COMMON_CHARTS,
        SAMPLES,
        [CHARTS / study for study in CONFIG.known],
        derived(SHOWN),
        # Pages offer the samples and show the sources.
        results(),
        STUDIES,
        # The reference shows the settings, the architecture page the parts of the package and files to
        # read first.
        "config/config.yaml",
        "pyproject.toml",
        "Snakefile",
        sources(
            "docs/**/*.*",
            "tools/**/*.*",
            "analysis/**/*.py",
            "analysis/results/model/*.yaml",
            "analysis/site/templates/*.html",
        ),
    output:
        touch(WHOLE_SITE),
    log:
        "build/logs/report.log",
    benchmark:
        "build/benchmarks/report.tsv"
    resources:
        mem_mb=2000,
    params:
        python=PYTHON,
        tables=TABLES,
        charts=CHARTS,
        results=RESULTS,
        site=SITE,
        published=published_option,
        files=site_digest,
        # True rebuilds a site whose first page was removed, and the next run rebuilds it once more.
        lost=is_site_lost,
    message:
        "Building the site"
    shell:
        "{params.python:q} -m analysis.site.pages --tables {params.tables} --results {params.results}"
        " --charts {params.charts} --site {params.site} {params.published} > {log} 2>&1"
        " && echo site: {params.site}/index.html"
