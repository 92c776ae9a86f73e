from importlib.metadata import version

from analysis.site.pages.navigation import STUDIES as STUDY_PAGES
from analysis.site.pages.navigation import first_chart

# The whole site, from tables, sources and pages. It needs neither a GPU nor a network. Charts are
# drawn study by study, so that a change in a page draws none, and one in a study its own.
CHARTS = TABLES / "charts"
ENGINE = [CHARTS / name for name in ("vega.js", "palettes.json")]
DRAWING = [
    *SUMMARISING,
    *sources(
        "analysis/api/*.py",
        "analysis/site/__init__.py",
        "analysis/site/charts/*.py",
        "analysis/site/facts/*.py",
        "analysis/toolchain/*.py",
    ),
]


rule chart_engine:
    input:
        DRAWING,
    output:
        ENGINE,
    log:
        "build/logs/chart_engine.log",
    benchmark:
        "build/benchmarks/chart_engine.tsv"
    resources:
        mem_mb=1000,
    params:
        out=str(CHARTS),
        # Only a machine that draws charts has these packages.
        versions=lambda _: [version("altair"), version("vl-convert-python")],
    message:
        "Writing what draws the charts"
    shell:
        "{PYTHON} -m analysis.site.charts.engine --out {params.out} 2> {log}"


def pictured(study):
    """The chart that is in a study's page as a picture, too. Another one draws the study's charts
    anew, but no other change in the page."""
    return first_chart(Path("docs", STUDY_PAGES, f"{study}.md"))


rule charts:
    input:
        lambda w: tables_of(w.study),
        lambda w: derived({w.study: SHOWN[w.study]} if w.study in SHOWN else {}),
        # Captures are drawn, and whether they are stale depends on the code beside them.
        lambda w: results_of([w.study]),
        lambda w: code_of_results(w.study),
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
        results=str(RESULTS),
        tables=lambda w: TABLES / "tables" / w.study,
        derived=lambda w: TABLES / "derived" / w.study,
        picture=lambda w: pictured(w.study),
        files=lambda w: digest([*names_about([w.study]), *files_of(w.study)]),
    message:
        "Drawing the charts of {wildcards.study}"
    shell:
        "{PYTHON} -m analysis.site.charts {wildcards.study} --tables {params.tables}"
        " --derived {params.derived} --results {params.results} --out {output}"
        " --picture={params.picture:q} 2> {log}"


# Snakemake removes what a rule makes before it runs it, so no page may be that: the site of before
# stays whole until there is a new one, and where a page has a mistake.
WHOLE = SITE / ".whole"


rule report:
    input:
        SUMMARY_TABLES,
        CODE_TABLES,
        ENGINE,
        [CHARTS / study for study in CONFIG.known],
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
        touch(WHOLE),
    log:
        "build/logs/report.log",
    benchmark:
        "build/benchmarks/report.tsv"
    resources:
        mem_mb=2000,
    params:
        tables=str(TABLES),
        charts=str(CHARTS),
        results=str(RESULTS),
        modules=str(MODULES),
        site=str(SITE),
        files=lambda _: digest(
            [*sources("docs/**/*.*"), *STUDIES, *result_names("**/*")]
        ),
        # Where the first page was removed since, it is published again; and once more the next
        # time, as this is then another parameter again.
        lost=lambda _: WHOLE.exists() and not (SITE / "index.html").exists(),
    message:
        "Building the site"
    shell:
        "{PYTHON} -m analysis.site.pages --tables {params.tables} --results {params.results}"
        " --modules {params.modules} --charts {params.charts} --site {params.site} > {log} 2>&1"
        " && echo site: {params.site}/index.html"
