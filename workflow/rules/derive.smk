# Tables that a study makes from its code and its built modules, by its tables.py.


def derived(studies):
    """The folders of these tables, of each of the studies that has some."""
    return [
        TABLES / "derived" / name
        for name, study in studies.items()
        if (study.folder / "tables.py").exists()
    ]


def made_from(wildcards):
    """Sources of the tables: the kept tables, or the study's modules."""
    if wildcards.study in KEPT:
        return sources(f"{COMPILED}/{wildcards.study}/*.*")
    return modules_of(wildcards.study)


def derive_command(wildcards, output):
    if wildcards.study not in KEPT:
        return f"{PYTHON} -m analysis.toolchain.derived {wildcards.study} --modules {MODULES} --out {output}"
    kept = [
        shlex.quote(path)
        for path in made_from(wildcards)
        if not path.endswith(UNDERIVED)
    ]
    return f"mkdir -p {output} && cp {' '.join(kept)} {output}/"


rule derive:
    input:
        made_from,
        lambda w: files_of(w.study),
        SCHEMAS,
        CORE,
        sources("analysis/api/*.py", "analysis/toolchain/*.py"),
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
        command=derive_command,
    message:
        "Making the tables of {wildcards.study} from its code"
    shell:
        "({params.command}) 2> {log}"
