# Compiles the bindings of each study, and links every variant with them into a module. A variant gets
# separate bindings if they use a constant or option that differs from the study's.


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
    priority: 1000  # A measurement waits for it.
    resources:
        mem_mb=1000,
    params:
        compilers=compilers,
        cxx=CXX,
    message:
        "Building the library that flushes the CPU's caches"
    shell:
        "{params.cxx:q} -std=c++20 -O3 -Wall -Wextra -fPIC -shared {input} -o {output} 2> {log}"


rule bindings:
    input:
        bindings_sources,
        TOOLCHAIN_CODE,
    output:
        MODULES / "{study}" / "{bindings}.o",
    log:
        "build/logs/bindings/{study}/{bindings}.log",
    benchmark:
        "build/benchmarks/bindings/{study}/{bindings}.tsv"
    wildcard_constraints:
        bindings=r"(\w+\.)?bindings",
    priority: 1000  # Modules wait for them.
    resources:
        mem_mb=1000,
    params:
        python=PYTHON,
        nvcc=nvcc,
        compilers=compilers,
        libfabric=CONFIG.libfabric,
        libfabric_found=str(LIBFABRIC),
        source=bindings_file,
        settings=as_json(settings_of_bindings),
        packages=needed_package_versions(settings_of_bindings),
    message:
        "Compiling {wildcards.bindings} of {wildcards.study}"
    shell:
        "{params.python:q} -m analysis.toolchain.compile {params.source:q}"
        " --settings {params.settings:q} --nvcc {params.nvcc:q} --libfabric {params.libfabric:q}"
        " --out {output} 2> {log}"


rule module:
    input:
        module_sources,
        TOOLCHAIN_CODE,
        bindings=linked_bindings,
    output:
        module=MODULES / "{study}" / "{variant}.so",
        resources=MODULES / "{study}" / "{variant}.ptxas.csv",
    log:
        "build/logs/module/{study}/{variant}.log",
    benchmark:
        "build/benchmarks/module/{study}/{variant}.tsv"
    priority: source_kilobytes
    resources:
        mem_mb=1000,
    params:
        python=PYTHON,
        nvcc=nvcc,
        arch=ARCH,
        compilers=compilers,
        libfabric=CONFIG.libfabric,
        libfabric_found=str(LIBFABRIC),
        source=variant_file,
        settings=as_json(settings_of_variant),
        packages=needed_package_versions(settings_of_variant),
    message:
        "Building {wildcards.study}/{wildcards.variant} for {ARCH}"
    shell:
        "{params.python:q} -m analysis.toolchain.compile {params.source:q}"
        " --settings {params.settings:q} --nvcc {params.nvcc:q} --libfabric {params.libfabric:q}"
        " --arch {params.arch} --bindings {input.bindings} --out {output.module} 2> {log}"


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
    priority: 1
    resources:
        mem_mb=500,
    params:
        python=PYTHON,
    message:
        "Reading the machine code of {wildcards.study}/{wildcards.variant}"
    shell:
        "{params.python:q} -m analysis.toolchain.sass {wildcards.study} {wildcards.variant}"
        " --module {input.module} --out {output} 2> {log}"


rule code_of_study:
    input:
        resources=resource_tables,
        code=machine_code_tables,
    output:
        resources=CODE / "{study}" / "resources.csv",
        code=CODE / "{study}" / "machine_code.csv",
    log:
        "build/logs/code/{study}.log",
    benchmark:
        "build/benchmarks/code/{study}.tsv"
    priority: 1
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
    priority: 1
    resources:
        mem_mb=100,
    message:
        "Collecting registers, shared memory, spills and memory accesses"
    shell:
        "(awk 'FNR > 1 || NR == 1' {input.resources} > {output.resources}"
        " && awk 'FNR > 1 || NR == 1' {input.code} > {output.code}) < /dev/null 2> {log}"


rule keep_code:
    input:
        rules.code_of_study.output,
        derived_of_study,
        CORE,
        TOOLCHAIN_CODE,
    output:
        touch(TABLES / "kept" / "{study}"),
    log:
        "build/logs/keep_code/{study}.log",
    benchmark:
        "build/benchmarks/keep_code/{study}.tsv"
    priority: 1
    resources:
        mem_mb=500,
    params:
        python=PYTHON,
        code=code_folder,
        derived=derived_folder,
        out=kept_folder,
    message:
        "Keeping the compiler's tables of {wildcards.study}"
    shell:
        "{params.python:q} -m analysis.toolchain.compiled {wildcards.study} --code {params.code}"
        " --derived {params.derived} --out {params.out} 2> {log}"
