"""Read a study.yaml and resolve its references to names, cases and files."""

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final

from analysis import ROOT
from analysis.base.errors import FieldError, refuse_repeats, require_known
from analysis.base.expression import evaluate
from analysis.base.keys import NAME, read
from analysis.base.reading import read_yaml
from analysis.study.access import access_of
from analysis.study.claims.claim import resolve_claims
from analysis.study.description import Case, Study, Variant
from analysis.study.keys import PACKAGE_NEEDS, ROLES, CaseSet, StudyKeys, VariantKeys
from analysis.study.peers import releases

SOURCE_SUFFIXES: Final = (".cu", ".cpp", ".py")
NO_STUDIES: Final = frozenset({"build", "site", "tests", "results", "docs"})
"""Top-level folders in which a study.yaml describes no study: outputs, copies and examples."""


def discover(root: Path = ROOT) -> dict[str, Study]:
    """Every study of the repository by name.

    FieldError names the first invalid field, also where one study names another.
    """
    studies = {name: load_study(file) for name, file in _descriptions(root).items()}
    for name, study in studies.items():
        if study.limit:
            where, (other, variant) = f"{name}/study.yaml: limit", study.limit
            require_known(f"{where}.0", other, sorted(studies))
            require_known(f"{where}.1", variant, studies[other].variant_names)
    return studies


def find_study(name: str, root: Path = ROOT) -> Study:
    """The study `name` of the repository; FieldError lists all names."""
    files = _descriptions(root)
    require_known("study", name, sorted(files))
    return load_study(files[name])


def _descriptions(root: Path) -> dict[str, Path]:
    """The study.yaml of every study by name: `*/<name>/study.yaml`, except in NO_STUDIES and hidden
    folders. FieldError if a folder's name is invalid."""
    found = (file for file in root.glob("*/*/study.yaml") if not file.parts[-3].startswith("."))
    files = [file for file in found if file.parts[-3] not in NO_STUDIES]
    names = [file.parent.name for file in files]
    refuse_repeats("the folders of studies", names)
    for name in names:
        if not NAME.fullmatch(name):
            raise FieldError("the folder of a study", f"a name like {NAME.pattern}", name)
    return dict(sorted(zip(names, files, strict=True)))


def load_study(file: Path) -> Study:
    """Read and check one study.yaml. FieldError names the first invalid field."""
    where = f"{file.parent.name}/study.yaml"
    data = read_yaml(file)
    keys = read(StudyKeys, data, where)
    _check_references(keys, where)
    variants = tuple(_variant(entry, keys, file.parent, where) for entry in keys.entries)
    cases = {variant.name: {case.id for case in variant.cases} for variant in variants}
    named = {f"captured[{n}].case": one.case for n, one in enumerate(keys.captured)}
    for field, case in {"headline": keys.headline, **named}.items():
        if not any(case in of_variant for of_variant in cases.values()):
            raise FieldError(f"{where}: {field}", "a case that some variant has", case)
    about = {**vars(keys), "claims": resolve_claims(keys, data["headline"], cases, where)}
    return Study(**about, name=file.parent.name, folder=file.parent, variants=variants)


def _check_references(study: StudyKeys, where: str) -> None:
    """FieldError for the first name that names nothing of its kind in the study."""
    names = [entry.name for entry in study.entries]
    refuse_repeats(f"{where}: variants", names)
    for field, used, known in _references(study, names):
        for name in used:
            require_known(f"{where}: {field}", name, known)
    try:
        after = {entry.name: [entry.after] for entry in study.entries if entry.after}
        TopologicalSorter(after).prepare()
    except CycleError as error:
        name = error.args[1][-1]
        expected = f"a variant that does not come after {name} itself"
        raise FieldError(f"{where}: variants.{name}.after", expected, *after[name]) from None
    for name, metric in study.metrics.items():
        here, whole = f"{where}: metrics.{name}", study.metrics.get(metric.part_of)
        if metric.share and metric.unit != "1":
            raise FieldError(f"{here}.unit", "1 of a share", metric.unit)
        if metric.part_of and (whole is None or whole.part_of or whole.unit != metric.unit):
            expected = f"a metric in {metric.unit} that is not a part itself"
            raise FieldError(f"{here}.part_of", expected, metric.part_of)
    for name, cases in study.case_sets.items():  # also those that no variant uses
        _expand(cases, study.constants, f"{where}: cases.{name}")


def _references(
    study: StudyKeys, names: list[str]
) -> Iterator[tuple[str, Iterable[str], Collection[str]]]:
    """(field, names in it, known names) of every field that names something of the study."""
    by_role = {role: [e.name for e in study.entries if e.role == role] for role in ROLES}
    yield "goal", filter(None, [study.goal]), by_role["step"]
    keys = {key: None for cases in study.case_sets.values() for key in cases.values}
    yield "fitted_range", study.fitted_range, keys
    for n, captured in enumerate(study.captured):
        yield f"captured[{n}].constants", captured.constants, sorted(study.constants)
    for key, cases in study.case_sets.items():
        yield f"cases.{key}.metrics", cases.metrics or (), list(study.metrics)
    for entry in study.entries:
        for key, used, known in (
            ("after", filter(None, [entry.after]), names),
            ("ceilings", entry.ceilings or (), by_role["ceiling"]),
            ("beats", entry.beats, by_role["ceiling"]),
            ("constants", entry.constants, sorted(study.constants)),
            ("cases", entry.case_sets, sorted(study.case_sets)),
            ("full", entry.full, sorted(study.case_sets)),
            ("packages", entry.packages, sorted(releases())),
        ):
            yield f"variants.{entry.name}.{key}", used, known


def _variant(entry: VariantKeys, study: StudyKeys, folder: Path, where: str) -> Variant:
    """The variant with its source file, its constants, and the cases of its case sets."""
    here = f"{where}: variants.{entry.name}"
    constants = {**study.constants, **entry.constants}
    if both := sorted(set(constants) & set(entry.options)):
        raise FieldError(f"{here}.options", "names that no constant has", both[0])
    if entry.role == "shipped" and not (entry.packages or {*entry.needs} & {*PACKAGE_NEEDS}):
        expected = "the packages of a shipped operator, or one that it needs"
        raise FieldError(f"{here}.packages", expected, None)
    stem = entry.source or entry.name
    paths = [path for suffix in SOURCE_SUFFIXES if (path := folder / f"{stem}{suffix}").exists()]
    if len(paths) != 1:
        expected = f"exactly one of {[stem + suffix for suffix in SOURCE_SUFFIXES]} in the folder"
        raise FieldError(f"{here}.source", expected, [path.name for path in paths])
    (path,) = paths
    if path.suffix == ".cu" and "gpu" not in entry.needs:
        expected = "gpu among them, for a .cu source"
        raise FieldError(f"{here}.needs", expected, list(entry.needs) or None)

    def of_sets(key: str, names: Iterable[str]) -> dict[str, Case]:
        sets = [(study.case_sets[name], f"{where}: cases.{name}") for name in names]
        cases = [case for one, place in sets for case in _expand(one, constants, place)]
        refuse_repeats(f"{here}.{key}", [case.id for case in cases])
        return {case.id: case for case in cases}

    wider = {id: replace(case, grid="full") for id, case in of_sets("full", entry.full).items()}
    usual = of_sets("cases", entry.case_sets)
    variant = Variant(
        **{**vars(entry), "constants": constants},
        path=path,
        cases=tuple((usual | wider | usual).values()),
        payload=study.case_sets[entry.case_sets[0]].payload_bytes,
        headline=study.headline,
    )
    for case in variant.cases:
        access_of(variant, case, f"{here}.link")
    return variant


def _expand(cases: CaseSet, constants: Mapping[str, int], where: str) -> list[Case]:
    """One case for each combination of the values of the keys of a set."""
    settings = {field.name: getattr(cases, field.name) for field in fields(Case)[2:]}
    expanded = []
    for values in itertools.product(*cases.values.values()):
        point = dict(zip(cases.values, values, strict=True))
        names, place = {**constants, **point}, f"{where}.payload_bytes"
        payload = evaluate(cases.payload_bytes, names, place, 0)
        expanded.append(Case(point, payload, **settings))
    return expanded
