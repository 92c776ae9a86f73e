# Draws charts and builds the site from tables, sources and pages, without a GPU or a network. Charts
# are drawn by study: a changed page draws none, and a changed study draws only its charts.
from importlib.metadata import version

CHARTS = TABLES / "charts"
ENGINE = [CHARTS / "vega.js"]
COMMON_CHARTS = CHARTS / "all"
SAMPLES = TABLES / "samples.parquet"
# Snakemake deletes a rule's outputs before it runs the rule, so the site itself is no output: the
# previous one stays until the next is complete.
WHOLE_SITE = SITE / ".whole"
DRAWING = [
    *SUMMARISING,
    *sources("analysis/compare/*.py", "analysis/site/__init__.py"),
    *sources("analysis/site/charts/*.py", "analysis/site/facts/*.py"),
    *API,
    *TOOLCHAIN_CODE,
]


def widget_results(wildcards):
    """Results of the calibrating studies, which a study's widgets use, and their code."""
    if not (study_of(wildcards).folder / "widgets.py").exists():
        return []
    code = [path for study in CALIBRATING for path in files_of(study)]
    return [*results_of(CALIBRATING), *code]


rule chart_engine:
    input:
        DRAWING,
    output:
        ENGINE,
    log:
        "build/logs/chart_engine.log",
    priority: 1000  # Otherwise it is the last job before the measurement, and alone.
    params:
        # Only a machine that draws charts has these packages.
        versions=lambda wildcards: [version("altair"), version("vl-convert-python")],
    shell:
        "{PYTHON:q} -m analysis.site.charts.engine --out {CHARTS} 2> {log}"


rule charts:
    input:
        lambda wildcards: tables_of(wildcards.study),
        derived_of_study,
        # Captures are drawn, and code decides whether they are stale.
        lambda wildcards: results_of([wildcards.study]),
        lambda wildcards: files_of(wildcards.study),
        widget_results,
        DRAWING,
    output:
        directory(CHARTS / "{study}"),
    log:
        "build/logs/charts/{study}.log",
    priority: result_kilobytes  # the longest first
    params:
        files=lambda wildcards: digest_of_studies([wildcards.study]),
    shell:
        "{PYTHON:q} -m analysis.site.charts {wildcards.study} --out {output} --results {RESULTS}"
        " --tables {OF_STUDIES}/{wildcards.study} --derived {DERIVED}/{wildcards.study} 2> {log}"


rule common:
    input:
        SUMMARY_TABLES,
        CODE_TABLES,
        derived(SHOWN),
        RESULT_FILES,
        STUDIES,
        DRAWING,
        "docs/mkdocs.yml",
        sources("analysis/site/*.py", "analysis/site/pages/*.py"),
    output:
        directory(COMMON_CHARTS),
        SAMPLES,
    log:
        "build/logs/common.log",
    params:
        files=results_digest,
    shell:
        "{PYTHON:q} -m analysis.site.pages.common --tables {TABLES} --results {RESULTS}"
        " --charts {CHARTS} --samples {TABLES} 2> {log}"


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
        RESULT_FILES,
        STUDIES,
        # Pages show the settings, the parts of the package, and files to read first.
        "config/config.yaml",
        "pyproject.toml",
        "Snakefile",
        sources("docs/**/*.*", "tools/**/*.*", "analysis/**/*.py"),
        sources("analysis/results/model/*.yaml", "analysis/site/templates/*.html"),
    output:
        touch(WHOLE_SITE),
    log:
        "build/logs/report.log",
    params:
        # Faults of these machines stop the build, except in a quick trial.
        published=[] if IS_SMOKE else CONFIG.published,
        files=lambda wildcards: digest(
            [*sources("docs/**/*.*"), *STUDIES, results_digest(wildcards)]
        ),
        # A site whose first page was removed is rebuilt, and once more by the next run.
        lost=lambda wildcards: WHOLE_SITE.exists()
        and not (SITE / "index.html").exists(),
    shell:
        "{PYTHON:q} -m analysis.site.pages --tables {TABLES} --results {RESULTS} --charts {CHARTS}"
        " --site {SITE} --published {params.published} > {log} 2>&1"
        " && echo site: {SITE}/index.html"
