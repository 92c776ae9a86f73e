# Inputs and parameters of the rules that compile studies and derive tables from their code.
from functools import cache


def modules_of(study):
    """The compiled modules of a study, except those that this machine cannot build."""
    return [
        MODULES / study / f"{variant.name}.so"
        for variant in CONFIG.known[study].variants
        if variant.is_compiled and has_needed_libfabric(variant.needs, LIBFABRIC)
    ]


@cache
def toolchain():
    """The compilers. Only jobs that compile ask, because the CUDA compiler may have to be installed."""
    try:
        found = find_toolchain(CONFIG.nvcc, CONFIG.libfabric)
        require_arch(ARCH, found.nvcc)
    except HotpathError as error:
        sys.exit(f"error: {error}")
    return found


def nvcc(wildcards):
    return "auto" if IN_CONTAINER else toolchain().nvcc


def compilers(wildcards):
    """The compilers and their versions: new ones rebuild every module."""
    if IN_CONTAINER:
        return "of the image"
    return f"{toolchain().nvcc} {toolchain().version}, {toolchain().cxx_version}"


def bindings_sources(wildcards):
    return bindings_files(CONFIG.known[wildcards.study])


def module_sources(wildcards):
    study = CONFIG.known[wildcards.study]
    files = source_files(study, study.variant(wildcards.variant))
    return [path for path in files if path.suffix != ".py"]


def source_kilobytes(wildcards):
    """The size of a module's source files. As its priority, it lets modules start first that take
    long to compile."""
    return sum(path.stat().st_size for path in module_sources(wildcards)) / 1000


def linked_bindings(wildcards):
    """The object with the bindings that a variant is linked with."""
    study = CONFIG.known[wildcards.study]
    name = bindings_name(study, study.variant(wildcards.variant))
    return MODULES / study.name / f"{name}.o"


def bindings_file(wildcards):
    return str(CONFIG.known[wildcards.study].bindings_path)


def variant_file(wildcards):
    return str(CONFIG.known[wildcards.study].variant(wildcards.variant).path)


def settings_of_bindings(wildcards):
    study = CONFIG.known[wildcards.study]
    name = wildcards.bindings.removesuffix(SHARED_BINDINGS).removesuffix(".")
    return bindings_settings(study, study.variant(name) if name else None)


def settings_of_variant(wildcards):
    return variant_settings(CONFIG.known[wildcards.study].variant(wildcards.variant))


def as_json(settings):
    """A parameter with the result of the function `settings` as JSON."""
    return lambda wildcards: settings(wildcards).to_json()


def needed_package_versions(settings):
    """A parameter with the installed versions of the packages that the result of the function
    `settings` needs: new ones recompile a file."""
    return lambda wildcards: package_versions(settings(wildcards).needs)


# The repository keeps the tables of the current code, by study. Only studies whose tables are out of
# date are compiled for a site.
COMPILED = Path("compiled") / ARCH
CODE = TABLES / "code"
CODE_TABLES = [TABLES / "resources.csv", TABLES / "machine_code.csv"]


@cache
def has_kept(study):
    """Whether the kept tables of a study are of its current code."""
    return study in SHOWN and is_kept(SHOWN[study], COMPILED / study)


def code_tables(study, table, suffix):
    """A study's kept table, or else the tables with this suffix beside its modules."""
    if has_kept(study):
        return COMPILED / study / table
    return [module.with_suffix(suffix) for module in modules_of(study)]


def resource_tables(wildcards):
    return code_tables(wildcards.study, "resources.csv", ".ptxas.csv")


def machine_code_tables(wildcards):
    return code_tables(wildcards.study, "machine_code.csv", ".sass.csv")


def kept_marks(wildcards):
    """Marks of the studies to build whose kept tables are out of date and can be made anew here."""
    if IS_SMOKE:
        return []
    return [
        TABLES / "kept" / name
        for name, study in CONFIG.studies.items()
        if not has_kept(name)
        and all(has_needed_libfabric(v.needs, LIBFABRIC) for v in study.variants)
    ]


# Tables that a study's tables.py derives from its code and its built modules.
DERIVED = TABLES / "derived"


def derived(studies):
    """The folders of derived tables of those studies that have some."""
    return [
        DERIVED / name
        for name, study in studies.items()
        if (study.folder / "tables.py").exists()
    ]


def derived_of_study(wildcards):
    name = wildcards.study
    return derived({name: SHOWN[name]}) if name in SHOWN else []


def derived_folder(wildcards):
    return DERIVED / wildcards.study


def code_folder(wildcards):
    return CODE / wildcards.study


def kept_folder(wildcards):
    return COMPILED / wildcards.study


def derive_sources(wildcards):
    """The kept tables of a study, or else its modules."""
    if has_kept(wildcards.study):
        return sources(f"{COMPILED}/{wildcards.study}/*.*")
    return modules_of(wildcards.study)


def derive_compilers(wildcards):
    """The compilers of the study's modules, of which kept tables need none."""
    return "" if has_kept(wildcards.study) else compilers(wildcards)


def derive_command(wildcards, output):
    if not has_kept(wildcards.study):
        program = (
            f"{shlex.quote(PYTHON)} -m analysis.toolchain.derived {wildcards.study}"
        )
        return f"{program} --modules {MODULES} --out {output}"
    # The other kept files describe the compiled code itself.
    others = (MADE_OF, *COMPILER_TABLES)
    kept = [path for path in derive_sources(wildcards) if not path.endswith(others)]
    return f"mkdir -p {output} && cp {' '.join(map(shlex.quote, kept))} {output}/"
