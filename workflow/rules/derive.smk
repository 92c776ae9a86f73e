# Tables that a study makes from its code and its built modules, by its tables.py.


def derived(studies):
    """The folders of these tables, of each of the studies that has some."""
    return [
        TABLES / "derived" / name
        for name, study in studies.items()
        if (study.folder / "tables.py").exists()
    ]


rule derive:
    input:
        lambda w: modules_of(w.study),
        lambda w: files_of(w.study),
        SCHEMAS,
        CORE,
        sources("analysis/toolchain/*.py"),
    output:
        directory(TABLES / "derived" / "{study}"),
    log:
        "build/logs/derive/{study}.log",
    benchmark:
        "build/benchmarks/derive/{study}.tsv"
    resources:
        mem_mb=1000,
    params:
        compiler=COMPILER,
        files=lambda w: digest(files_of(w.study)),
    message:
        "Making the tables of {wildcards.study} from its code"
    shell:
        "{PYTHON} -m analysis.derived {wildcards.study} --modules {MODULES} --out {output} 2> {log}"
