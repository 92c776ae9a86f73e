# Draws charts and builds the site from tables, sources and pages, without a GPU or a network. A
# changed page draws no chart; all charts together take seconds.
from importlib.metadata import version

CHARTS = TABLES / "charts"
SAMPLES = TABLES / "samples.parquet"
# Snakemake deletes a rule's outputs before it runs the rule, so the site itself is no output: the
# previous one stays until the next is complete.
WHOLE_SITE = SITE / ".whole"
DRAWING = [
    *SUMMARISING,
    *sources("analysis/compare/*.py", "analysis/site/__init__.py"),
    *sources("analysis/site/charts/*.py", "analysis/site/facts/*.py"),
    *sources("analysis/results/answers/*.py"),
    *API,
    *TOOLCHAIN_CODE,
]


rule charts:
    input:
        SUMMARY_TABLES,
        CODE_TABLES,
        # Captures are drawn, and code decides whether results are stale.
        RESULT_FILES,
        STUDIES,
        DRAWING,
        "docs/mkdocs.yml",
        sources("analysis/site/*.py", "analysis/site/pages/*.py"),
        # Tables of studies: outputs of the probe, and published rates of other links.
        sources("tools/**/*.*", "analysis/results/model/*.yaml"),
    output:
        # Snakemake hashes all inputs for each output.
        directory(CHARTS),
        SAMPLES,
    log:
        "build/logs/charts.log",
    params:
        files=names_of_inputs,
        # Only a machine that draws charts has these packages.
        versions=lambda wildcards: [version("altair"), version("vl-convert-python")],
    shell:
        "{PYTHON:q} -m analysis.site.pages.common --tables {TABLES} --results {RESULTS}"
        " --charts {CHARTS} --samples {TABLES} 2> {log}"


rule report:
    input:
        SUMMARY_TABLES,
        CODE_TABLES,
        CHARTS,
        SAMPLES,
        # Pages offer the samples and show the sources.
        RESULT_FILES,
        STUDIES,
        # Pages show the settings, the parts of the package, and files to read first.
        "config/config.yaml",
        "pyproject.toml",
        "Snakefile",
        sources("docs/**/*.*", "tools/**/*.*", "analysis/**/*.py"),
        sources("analysis/site/templates/*.html"),
    output:
        touch(WHOLE_SITE),
    log:
        "build/logs/report.log",
    params:
        # Faults of these machines stop the build, except in a quick trial.
        published=[] if IS_SMOKE else CONFIG.published,
        files=lambda wildcards: digest(
            [*sources("docs/**/*.*"), *STUDIES, names_of_inputs(wildcards)]
        ),
        # A site whose first page was removed is rebuilt, and once more by the next run.
        lost=lambda wildcards: WHOLE_SITE.exists()
        and not (SITE / "index.html").exists(),
    shell:
        "{PYTHON:q} -m analysis.site.pages --tables {TABLES} --results {RESULTS} --charts {CHARTS}"
        " --site {SITE} --published {params.published} > {log} 2>&1"
        " && echo site: {SITE}/index.html"
