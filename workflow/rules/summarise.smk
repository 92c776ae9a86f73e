# Makes the tables of each study from its results, and joins them.


rule fit_links:
    input:
        new_results,
        results_of(CALIBRATING),
        [files_of(study) for study in CALIBRATING],
        SUMMARISING,
    output:
        LINKS,
    log:
        "build/logs/fit_links.log",
    benchmark:
        "build/benchmarks/fit_links.tsv"
    # Other jobs wait for it.
    priority: 1
    resources:
        mem_mb=1000,
    params:
        python=PYTHON,
        results=RESULTS,
        files=calibrating_digest,
    message:
        "Fitting the link of every machine"
    shell:
        "{params.python:q} -m analysis.results.tables.links --results {params.results} --out {output}"
        " 2> {log}"


rule summarise_study:
    input:
        new_results,
        study_results,
        files_of_study,
        SUMMARISING,
        links=links_of_study,
    output:
        tables_of("{study}"),
    log:
        "build/logs/summarise/{study}.log",
    benchmark:
        "build/benchmarks/summarise/{study}.tsv"
    resources:
        mem_mb=1000,
    params:
        python=PYTHON,
        results=RESULTS,
        out=output_folder,
        links=links_option,
        files=study_names_digest,
    message:
        "Summarising {wildcards.study}"
    shell:
        "{params.python:q} -m analysis.results.tables.of_study {wildcards.study}"
        " --results {params.results} {params.links} --out {params.out} 2> {log}"


rule summarise:
    input:
        # Results of removed studies are only here.
        results(),
        SUMMARISING,
        [table for study in CONFIG.known for table in tables_of(study)],
        links=LINKS,
    output:
        SUMMARY_TABLES,
    log:
        "build/logs/summarise.log",
    benchmark:
        "build/benchmarks/summarise.tsv"
    resources:
        mem_mb=1000,
    params:
        python=PYTHON,
        results=RESULTS,
        tables=TABLES,
        files=results_digest,
    message:
        "Summarising the results of every machine"
    shell:
        "{params.python:q} -m analysis.results.tables.together --tables {params.tables}/tables"
        " --links {input.links} --results {params.results} --out {params.tables} 2> {log}"
