# Bindings are compiled once per study. Each variant is linked with them into its own module.


def modules_of(study):
    """Every compiled module of a study that can be built here."""
    return [
        MODULES / study / f"{variant.name}.so"
        for variant in CONFIG.known[study].variants
        if variant.is_compiled and TOOLCHAIN.can_build(variant)
    ]


def description(wildcards):
    """The study.yaml. What it says of a module is among the parameters, too: a claim that changes
    compiles nothing. For the same reason what reads it is no input; of so many modules it would be
    most of what Snakemake looks at before it does anything."""
    return ancient(CONFIG.known[wildcards.study].folder / "study.yaml")


def code_of(wildcards):
    """The source files of a module."""
    study = CONFIG.known[wildcards.study]
    variant = study.variant(wildcards.variant)
    return [path for path in source_files(study, variant) if path.suffix != ".py"]


def settings_of_bindings(wildcards):
    """What the description says that decides how the bindings are compiled."""
    study = CONFIG.known[wildcards.study]
    needs = {need for variant in study.variants for need in variant.needs}
    return json.dumps([dict(study.constants), "libfabric" in needs])


def settings_of_module(wildcards):
    """What the description says that decides how the variant is compiled and linked, and what is
    installed of the packages that it needs."""
    variant = CONFIG.known[wildcards.study].variant(wildcards.variant)
    macros = dict(variant.constants) | dict(variant.options)
    return json.dumps([macros, variant.flags, variant.needs, package_versions(variant)])


# Used by every measurement, see analysis/measure/cpu_cache.py.
rule cpu_cache:
    input:
        "analysis/measure/cpu_cache.cpp",
    output:
        CPU_CACHE,
    log:
        "build/logs/cpu_cache.log",
    benchmark:
        "build/benchmarks/cpu_cache.tsv"
    resources:
        mem_mb=1000,
    params:
        compiler=COMPILER,
    message:
        "Building the library that flushes the CPU's caches"
    shell:
        "{TOOLCHAIN.cxx:q} -std=c++20 -O3 -Wall -Wextra -fPIC -shared {input} -o {output} 2> {log}"


rule bindings:
    input:
        lambda w: bindings_files(CONFIG.known[w.study]),
        description,
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
        settings=settings_of_bindings,
    message:
        "Compiling the bindings of {wildcards.study}"
    shell:
        "{PYTHON} -m analysis.toolchain.compile bindings {wildcards.study}"
        " --nvcc {TOOLCHAIN.nvcc:q} --libfabric {LIBFABRIC} --out {output} 2> {log}"


rule module:
    input:
        code_of,
        description,
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
        settings=settings_of_module,
    message:
        "Building {wildcards.study}/{wildcards.variant} for {ARCH}"
    shell:
        "{PYTHON} -m analysis.toolchain.compile module {wildcards.study} {wildcards.variant}"
        " --nvcc {TOOLCHAIN.nvcc:q} --libfabric {LIBFABRIC} --arch {ARCH} --bindings {input.bindings}"
        " --out {output.module} 2> {log}"


rule machine_code:
    input:
        sources("analysis/toolchain/__init__.py", "analysis/toolchain/sass.py"),
        module=MODULES / "{study}" / "{variant}.so",
    output:
        MODULES / "{study}" / "{variant}.sass.csv",
    log:
        "build/logs/machine_code/{study}/{variant}.log",
    benchmark:
        "build/benchmarks/machine_code/{study}/{variant}.tsv"
    resources:
        mem_mb=500,
    message:
        "Reading the machine code of {wildcards.study}/{wildcards.variant}"
    shell:
        "{PYTHON} -m analysis.toolchain.sass {wildcards.study} {wildcards.variant}"
        " --module {input.module} --out {output} 2> {log}"


# The repository keeps the tables of today's code by study. A site compiles only the other studies.
COMPILED = Path("compiled") / ARCH
KEPT = {name for name, study in SHOWN.items() if is_kept(study, COMPILED / name)}
CODE = TABLES / "code"
CODE_TABLES = [TABLES / "resources.csv", TABLES / "machine_code.csv"]


def code_of_study(study, table, suffix):
    """The kept table of a study, or what lies beside its modules with this suffix."""
    if study in KEPT:
        return COMPILED / study / table
    return [module.with_suffix(suffix) for module in modules_of(study)]


rule code_of_study:
    input:
        resources=lambda w: code_of_study(w.study, "resources.csv", ".ptxas.csv"),
        code=lambda w: code_of_study(w.study, "machine_code.csv", ".sass.csv"),
    output:
        resources=CODE / "{study}" / "resources.csv",
        code=CODE / "{study}" / "machine_code.csv",
    log:
        "build/logs/code/{study}.log",
    benchmark:
        "build/benchmarks/code/{study}.tsv"
    resources:
        mem_mb=100,
    message:
        "Collecting registers, spills and memory accesses of {wildcards.study}"
    shell:
        "(awk 'FNR > 1 || NR == 1' {input.resources} > {output.resources}"
        " && awk 'FNR > 1 || NR == 1' {input.code} > {output.code}) < /dev/null 2> {log}"


rule resources:
    input:
        resources=[CODE / study / "resources.csv" for study in SHOWN],
        code=[CODE / study / "machine_code.csv" for study in SHOWN],
    output:
        resources=CODE_TABLES[0],
        code=CODE_TABLES[1],
    log:
        "build/logs/resources.log",
    benchmark:
        "build/benchmarks/resources.tsv"
    resources:
        mem_mb=100,
    message:
        "Collecting registers, shared memory, spills and memory accesses"
    shell:
        "(awk 'FNR > 1 || NR == 1' {input.resources} > {output.resources}"
        " && awk 'FNR > 1 || NR == 1' {input.code} > {output.code}) < /dev/null 2> {log}"


def to_keep():
    """Marks of the studies whose compiled code is not kept, as far as all of it is built here."""
    if IS_SMOKE or CONFIG.studies != SHOWN:
        return []
    return [
        TABLES / "kept" / name
        for name, study in SHOWN.items()
        if name not in KEPT and all(TOOLCHAIN.can_build(v) for v in study.variants)
    ]


rule keep_code:
    input:
        rules.code_of_study.output,
        lambda w: derived({w.study: SHOWN[w.study]}),
        SCHEMAS,
        CORE,
        sources("analysis/toolchain/*.py"),
    output:
        touch(TABLES / "kept" / "{study}"),
    log:
        "build/logs/keep_code/{study}.log",
    benchmark:
        "build/benchmarks/keep_code/{study}.tsv"
    resources:
        mem_mb=500,
    params:
        code=lambda w: CODE / w.study,
        derived=lambda w: TABLES / "derived" / w.study,
        out=lambda w: COMPILED / w.study,
    message:
        "Keeping what compilers made of {wildcards.study}"
    shell:
        "{PYTHON} -m analysis.toolchain.compiled {wildcards.study} --code {params.code}"
        " --derived {params.derived} --out {params.out} 2> {log}"
