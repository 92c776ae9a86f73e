# Compiles the bindings of each study, and links every variant with them into a module. A variant gets
# separate bindings if they use a constant or option that differs from the study's. Tables of the
# compiled code follow; the repository keeps them, and a site compiles only studies whose code has changed.
import shlex

from analysis.measure.cpu import LIBRARY
from analysis.study.source import bindings_files, included_files, module_files
from analysis.toolchain.compile import link_command, object_command
from analysis.toolchain.compiled import CODE_TABLES as COMPILER_TABLES
from analysis.toolchain.compiled import is_kept
from analysis.toolchain.compilers import SCRATCH, find_cxx, find_toolchain
from analysis.toolchain.modules import (
    SHARED_BINDINGS,
    bindings_settings,
    shared_parts,
    variant_settings,
)
from analysis.toolchain.packages import PACKAGES, package_versions
from analysis.toolchain.reports import REPORT

CXX = ending_in_one_line(find_cxx)()
CPU_CACHE = LIBRARY.relative_to(workflow.basedir)
MODULES = Path("build/modules") / ARCH
COMPILED = Path("compiled") / ARCH
CODE_TABLES = [TABLES / name for name in COMPILER_TABLES]
SUFFIXES = {"resources": ".ptxas.csv", "machine_code": ".sass.csv"}
"""Of tables beside a module. JOIN puts those of all modules together."""
JOIN = "awk 'FNR > 1 || NR == 1' < /dev/null"
HAS_LIBFABRIC = not PACKAGES["libfabric"].unmet


def is_buildable(variant):
    return HAS_LIBFABRIC or "libfabric" not in variant.needs


def modules_of(study):
    """The compiled modules of a study, except those that this machine cannot build."""
    return [
        MODULES / study / f"{variant.name}.so"
        for variant in CONFIG.known[study].variants
        if variant.is_compiled and is_buildable(variant)
    ]


@ending_in_one_line
def toolchain():
    """The compilers. Only jobs that compile ask, because there may be no CUDA compiler."""
    found = find_toolchain(CONFIG.nvcc)
    require_arch(ARCH, found.nvcc)
    return found


def compilers(wildcards):
    """What compiles, with versions: new ones rebuild every module."""
    found = toolchain()
    return f"{found.nvcc} {found.version}, {found.cxx_version}, {PYTHON}"


def variant_of(wildcards):
    return ending_in_one_line(study_of(wildcards).variant)(wildcards.variant)


@cache
def parts_of(study):
    return shared_parts(CONFIG.known[study])


def earlier_twin(wildcards):
    """The equal module of an earlier variant, without suffix, or None."""
    first, _ = parts_of(wildcards.study)[variant_of(wildcards).name]
    return MODULES / wildcards.study / first if first != wildcards.variant else None


def linked_bindings(wildcards):
    """The object with the bindings that a variant is linked with."""
    _, name = parts_of(wildcards.study)[variant_of(wildcards).name]
    return MODULES / wildcards.study / f"{name}.o"


def module_inputs(wildcards):
    if twin := earlier_twin(wildcards):
        return [f"{twin}.so", f"{twin}{REPORT}"]
    files = module_files(study_of(wildcards), variant_of(wildcards))
    return [linked_bindings(wildcards), *files]


@ending_in_one_line
def object_words(path, settings, out):
    return shlex.join(object_command(path, settings, toolchain(), ARCH, out))


# Snakemake ignores changes of parameters that depend on inputs or outputs.
def bindings_command(wildcards):
    """The command that compiles bindings, and the versions of the libraries that it needs."""
    study, name = study_of(wildcards), wildcards.bindings
    variant = name.removesuffix(SHARED_BINDINGS).removesuffix(".")
    settings = bindings_settings(study, study.variant(variant) if variant else None)
    source, out = study.folder / "bindings.cpp", MODULES / study.name / f"{name}.o"
    return object_words(source, settings, out), package_versions(settings.needs)


def module_command(wildcards):
    """Commands that make a module and print ptxas's report, and the versions of its libraries."""
    out = MODULES / wildcards.study / f"{wildcards.variant}.so"
    if twin := earlier_twin(wildcards):
        # Not a link: the loader takes two names of one file for one module.
        return f"cp {twin}.so {out} && cat {twin}{REPORT}", {}
    variant, compiled = variant_of(wildcards), out.with_suffix(".o")
    settings, objects = variant_settings(variant), [
        compiled,
        linked_bindings(wildcards),
    ]
    link = link_command(objects, settings, toolchain(), ARCH, out)
    command = f"{object_words(variant.path, settings, compiled)} && {shlex.join(link)}"
    return command, package_versions(settings.needs)


def source_kilobytes(wildcards):
    files = included_files(variant_of(wildcards).path)
    return sum(path.stat().st_size / 1000 for path in files)


@cache
def has_kept(study):
    """Whether the repository has the tables of a study's current code."""
    return study in SHOWN and is_kept(SHOWN[study], COMPILED / study)


def code_tables(studies, table):
    """Kept tables of studies, or else those beside their modules."""
    paths = []
    for name in studies:
        beside = [module.with_suffix(SUFFIXES[table]) for module in modules_of(name)]
        paths += [COMPILED / name / f"{table}.csv"] if has_kept(name) else beside
    return paths


def kept_marks(wildcards):
    """Marks of the studies to build whose kept tables are out of date and can be made anew here."""
    return [
        TABLES / "kept" / name
        for name, study in CONFIG.studies.items()
        if not (IS_SMOKE or has_kept(name)) and all(map(is_buildable, study.variants))
    ]


# Used by every measurement, see analysis/measure/cpu.py.
rule cpu_cache:
    input:
        "analysis/measure/cpu_cache.cpp",
    output:
        CPU_CACHE,
    log:
        "build/logs/cpu_cache.log",
    priority: 1000  # A measurement waits for it.
    params:
        compilers=compilers,
    shell:
        "{CXX:q} -std=c++20 -O3 -Wall -Wextra -fPIC -shared {input} -o {output} 2> {log}"


rule bindings:
    input:
        lambda wildcards: bindings_files(study_of(wildcards)),
    output:
        MODULES / "{study}" / "{bindings}.o",
    log:
        "build/logs/bindings/{study}/{bindings}.log",
    wildcard_constraints:
        bindings=r"(\w+\.)?bindings",
    priority: 1000  # Modules wait for them.
    params:
        compilers=compilers,
        command=bindings_command,
    shell:
        "TMPDIR={SCRATCH:q} {params.command[0]} > {log} 2>&1"


rule module:
    input:
        module_inputs,
    output:
        module=MODULES / "{study}" / "{variant}.so",
        report=MODULES / "{study}" / f"{{variant}}{REPORT}",
    log:
        "build/logs/module/{study}/{variant}.log",
    # Large sources take long to compile, so their modules start first.
    priority: source_kilobytes
    resources:
        mem_mb=1000,
    params:
        compilers=compilers,
        command=module_command,
    shell:
        "export TMPDIR={SCRATCH:q}; ({params.command[0]}) > {log} 2>&1 && cp {log} {output.report}"


rule reports:
    input:
        sources("analysis/toolchain/__init__.py", "analysis/toolchain/reports.py"),
        report=MODULES / "{study}" / f"{{variant}}{REPORT}",
        module=MODULES / "{study}" / "{variant}.so",
    output:
        *[MODULES / "{study}" / f"{{variant}}{suffix}" for suffix in SUFFIXES.values()],
    log:
        "build/logs/reports/{study}/{variant}.log",
    priority: 1
    shell:
        "{PYTHON:q} -m analysis.toolchain.reports {input.module} 2> {log}"


rule code_table:
    input:
        lambda wildcards: code_tables(SHOWN, wildcards.table),
    output:
        TABLES / "{table}.csv",
    log:
        "build/logs/{table}.log",
    wildcard_constraints:
        table="|".join(SUFFIXES),
    priority: 1
    shell:
        "{JOIN} {input} > {output} 2> {log}"


# Renews the repository's tables of a study whose code has changed.
rule keep_code:
    input:
        CORE,
        TOOLCHAIN_CODE,
        resources=lambda wildcards: code_tables([wildcards.study], "resources"),
        code=lambda wildcards: code_tables([wildcards.study], "machine_code"),
    output:
        touch(TABLES / "kept" / "{study}"),
    log:
        "build/logs/keep_code/{study}.log",
    priority: 1
    params:
        code=TABLES / "code" / "{study}",
    shell:
        "(mkdir -p {params.code} && {JOIN} {input.resources} > {params.code}/resources.csv"
        " && {JOIN} {input.code} > {params.code}/machine_code.csv"
        " && {PYTHON:q} -m analysis.toolchain.compiled {wildcards.study} {params.code}"
        " {COMPILED}/{wildcards.study}) 2> {log}"
