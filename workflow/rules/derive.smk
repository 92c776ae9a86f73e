# Tables that a study's tables.py derives from its code and its built modules.


rule derive:
    input:
        derive_sources,
        files_of_study,
        CORE,
        API,
        TOOLCHAIN_CODE,
    output:
        directory(DERIVED / "{study}"),
    log:
        "build/logs/derive/{study}.log",
    benchmark:
        "build/benchmarks/derive/{study}.tsv"
    priority: 1
    resources:
        mem_mb=1000,
    params:
        compilers=derive_compilers,
        files=study_files_digest,
        command=derive_command,
    message:
        "Deriving tables from the code of {wildcards.study}"
    shell:
        "({params.command}) 2> {log}"
