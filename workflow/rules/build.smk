# Bindings are compiled once per study. Each variant is linked with them into its own module.


def modules_of(study):
    """Every compiled module of a study that can be built here."""
    return [
        MODULES / study / f"{variant.name}.so"
        for variant in CONFIG.studies[study].variants
        if variant.is_compiled and TOOLCHAIN.can_build(variant)
    ]


def code_of(wildcards):
    """The source files of a module, and the study.yaml with its flags."""
    study = CONFIG.studies[wildcards.study]
    variant = study.variant(wildcards.variant)
    code = [path for path in source_files(study, variant) if path.suffix != ".py"]
    return [*code, study.folder / "study.yaml"]


# Used by every measurement, see analysis/measure/cpu_cache.py.
rule cpu_cache:
    input:
        "analysis/measure/cpu_cache.cpp",
    output:
        CPU_CACHE,
    log:
        "build/logs/cpu_cache.log",
    params:
        compiler=COMPILER,
    message:
        "Building the library that flushes the CPU's caches"
    shell:
        "{TOOLCHAIN.cxx} -std=c++20 -O3 -Wall -Wextra -fPIC -shared {input} -o {output} 2> {log}"


rule bindings:
    input:
        lambda w: CONFIG.studies[w.study].folder / "bindings.cpp",
        lambda w: sorted(CONFIG.studies[w.study].folder.glob("*.h")),
        lambda w: CONFIG.studies[w.study].folder / "study.yaml",
        sources("analysis/toolchain/*.py"),
    output:
        MODULES / "{study}" / "bindings.o",
    log:
        "build/logs/bindings/{study}.log",
    benchmark:
        "build/benchmarks/bindings/{study}.tsv"
    resources:
        mem_mb=1000,
    params:
        compiler=COMPILER,
        libfabric=str(TOOLCHAIN.libfabric),
    message:
        "Compiling the bindings of {wildcards.study}"
    shell:
        "{PYTHON} -m analysis.toolchain.compile bindings {wildcards.study}"
        " --nvcc {TOOLCHAIN.nvcc} --libfabric {LIBFABRIC} --out {output} 2> {log}"


rule module:
    input:
        code_of,
        sources("analysis/toolchain/*.py"),
        bindings=MODULES / "{study}" / "bindings.o",
    output:
        module=MODULES / "{study}" / "{variant}.so",
        resources=MODULES / "{study}" / "{variant}.ptxas.csv",
    log:
        "build/logs/module/{study}/{variant}.log",
    benchmark:
        "build/benchmarks/module/{study}/{variant}.tsv"
    resources:
        mem_mb=1000,
    params:
        compiler=COMPILER,
        libfabric=str(TOOLCHAIN.libfabric),
    message:
        "Building {wildcards.study}/{wildcards.variant} for {ARCH}"
    shell:
        "{PYTHON} -m analysis.toolchain.compile module {wildcards.study} {wildcards.variant}"
        " --nvcc {TOOLCHAIN.nvcc} --libfabric {LIBFABRIC} --arch {ARCH} --bindings {input.bindings}"
        " --out {output.module} 2> {log}"


rule machine_code:
    input:
        MODULES / "{study}" / "{variant}.so",
        "analysis/toolchain/sass.py",
    output:
        MODULES / "{study}" / "{variant}.sass.csv",
    log:
        "build/logs/machine_code/{study}/{variant}.log",
    message:
        "Reading the machine code of {wildcards.study}/{wildcards.variant}"
    shell:
        "{PYTHON} -m analysis.toolchain.sass {wildcards.study} {wildcards.variant}"
        " --module {input[0]} --out {output} 2> {log}"


def beside_modules(suffix):
    """The file with this suffix next to every module of every study."""
    modules = [module for study in CONFIG.studies for module in modules_of(study)]
    return [module.with_suffix(suffix) for module in modules]


rule resources:
    input:
        resources=beside_modules(".ptxas.csv"),
        code=beside_modules(".sass.csv"),
    output:
        resources=TABLES / "resources.csv",
        code=TABLES / "machine_code.csv",
    log:
        "build/logs/resources.log",
    message:
        "Collecting registers, shared memory, spills and memory accesses"
    shell:
        "(awk 'FNR > 1 || NR == 1' {input.resources} > {output.resources}"
        " && awk 'FNR > 1 || NR == 1' {input.code} > {output.code}) 2> {log}"
