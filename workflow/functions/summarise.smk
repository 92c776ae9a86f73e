# Inputs and parameters of the rules that make tables, charts and the site.
from functools import cache
from importlib.metadata import version

from analysis.results.store.runs import PUBLISHED, plain_files
from analysis.results.tables.rows import TABLES as REGISTRY
from analysis.study import calibrating

# Every study has its tables, so that a change of its results or code makes only those anew. The
# tables of the site have the same names and join those of all studies.
NAMES = [*(f"{name}.csv" for name in REGISTRY), "refused.json"]
SUMMARY_TABLES = [TABLES / name for name in NAMES]
LINKS = TABLES / "links.json"
CHARTS = TABLES / "charts"
ENGINE = [CHARTS / "vega.js"]
COMMON_CHARTS = CHARTS / "all"
SAMPLES = TABLES / "samples.parquet"
# Snakemake deletes a rule's outputs before it runs the rule, so the site itself is no output: the
# previous one stays until the next is complete.
WHOLE_SITE = SITE / ".whole"

# Results are plain inputs, from any machine. Files whose names no result can have are left out,
# because Snakemake would expand braces in them.
RESULT_FILES = list(plain_files(RESULTS))
CALIBRATING = calibrating(CONFIG.known)
SUMMARISING = [
    *CORE,
    *sources("analysis/results/*.py", "analysis/results/model/*.py"),
    *sources("analysis/results/store/*.py", "analysis/results/tables/*.py"),
]
DRAWING = [
    *SUMMARISING,
    *sources(
        "analysis/compare/*.py",
        "analysis/site/__init__.py",
        "analysis/site/charts/*.py",
        "analysis/site/facts/*.py",
    ),
    *API,
    *TOOLCHAIN_CODE,
]


def tables_of(study):
    return [TABLES / "tables" / study / name for name in NAMES]


def study_tables(wildcards):
    return tables_of(wildcards.study)


def tables_folder(wildcards):
    return TABLES / "tables" / wildcards.study


def results():
    """Samples of this and of other machines, and published figures."""
    return [str(path) for path in RESULT_FILES]


def results_of(studies):
    """Results of some studies."""
    return [
        str(path)
        for path in RESULT_FILES
        if path.parent.name in studies
        or (path.parent.name == PUBLISHED and path.stem in studies)
    ]


def study_results(wildcards):
    return results_of([wildcards.study])


def result_names(*patterns):
    """All names below the results that match, including those of refused files."""
    found = {path for pattern in patterns for path in RESULTS.glob(pattern)}
    return [ascii(str(path)) for path in sorted(found)]


def names_about(studies):
    """Names below the results that concern some studies."""
    patterns = [
        f"*/{study}{rest}" for study in studies for rest in ("*", f"{os.sep}**/*")
    ]
    return result_names("*", *patterns)


def nice(wildcards):
    """`nice` for all studies but that with most results, whose charts take longest."""
    largest = max(CONFIG.known, key=size_of_results)
    return "" if wildcards.study == largest else "nice"


@cache
def size_of_results(study):
    return sum(Path(path).stat().st_size for path in results_of([study]))


def widget_results(wildcards):
    """Results of the calibrating studies, which a study's widgets use, and their code."""
    if not (CONFIG.known[wildcards.study].folder / "widgets.py").exists():
        return []
    return [
        *results_of(CALIBRATING),
        *(path for study in CALIBRATING for path in files_of(study)),
    ]


def links_of_study(wildcards):
    """The fitted links, if the link model predicts the study."""
    return [LINKS] if CONFIG.known[wildcards.study].has_link else []


def links_option(wildcards):
    return [f"--links {path}" for path in links_of_study(wildcards)]


# Parameters are evaluated again when a job starts: by then, there may be new results.
def calibrating_digest(wildcards):
    return digest(names_about(CALIBRATING))


def study_names_digest(wildcards):
    study = wildcards.study
    return digest([*names_about([study]), *files_of(study)])


def results_digest(wildcards):
    return digest([*CONFIG.known, *result_names("**/*")])


def site_digest(wildcards):
    return digest([*sources("docs/**/*.*"), *STUDIES, *result_names("**/*")])


def chart_packages(wildcards):
    """Versions of the packages that draw. Only a machine that draws charts has them."""
    return [version("altair"), version("vl-convert-python")]


def published_option(wildcards):
    """Faults of these machines stop the build, except in a quick trial."""
    names = [] if CONFIG.grid.name == "smoke" else CONFIG.published
    return f"--published {' '.join(names)}"


def is_site_lost(wildcards):
    """Whether the first page was removed after the site was built."""
    return WHOLE_SITE.exists() and not (SITE / "index.html").exists()
