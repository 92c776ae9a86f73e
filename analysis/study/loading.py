"""Read a study.yaml and resolve its references to names, cases and files."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from analysis import ROOT
from analysis.base.errors import FieldError, refuse_repeats, require_known
from analysis.base.expression import evaluate
from analysis.base.keys import NAME, read
from analysis.base.schema import read_yaml
from analysis.study.access import access_of
from analysis.study.calibration import check_calibration
from analysis.study.claims import Claim, Subjects, parse_claims
from analysis.study.claims.bounds import digests
from analysis.study.description import Captured, Case, Metric, Study, Variant, case_id
from analysis.study.keys import CaseSet, CaseValue, StudyKeys, VariantKeys

SOURCE_SUFFIXES: Final = (".cu", ".cpp", ".py")
NO_STUDIES: Final = frozenset({"build", "site", "tests", "results", "docs"})
"""Top-level folders in which a study.yaml describes no study: outputs, copies and examples."""


def discover(root: Path = ROOT) -> dict[str, Study]:
    """Every study of the repository by name.

    FieldError names the first invalid field, also where one study names another.
    """
    studies = {name: load_study(file) for name, file in _descriptions(root).items()}
    for name, study in studies.items():
        if study.limit is not None:
            where = f"{name}/study.yaml: limit"
            require_known(f"{where}.study", study.limit.study, sorted(studies))
            of = studies[study.limit.study]
            require_known(f"{where}.variant", study.limit.variant, of.variant_names)
    return studies


def find_study(name: str, root: Path = ROOT) -> Study:
    """The study `name` of the repository; FieldError lists all names."""
    files = _descriptions(root)
    require_known("study", name, sorted(files))
    return load_study(files[name])


def _descriptions(root: Path) -> dict[str, Path]:
    """The study.yaml of every study by name: `*/<name>/study.yaml`, except in NO_STUDIES and hidden
    folders. FieldError if a folder's name is invalid."""
    found = [
        file
        for file in root.glob("*/*/study.yaml")
        if (top := file.parts[-3]) not in NO_STUDIES and not top.startswith(".")
    ]
    files = sorted(found, key=lambda file: file.parent.name)
    names = [file.parent.name for file in files]
    refuse_repeats("the folders of studies", names)
    for name in names:
        if not NAME.fullmatch(name):
            raise FieldError("the folder of a study", f"a name like {NAME.pattern}", name)
    return dict(zip(names, files, strict=True))


def load_study(file: Path) -> Study:
    """Read and check one study.yaml. FieldError names the first invalid field."""
    data = read_yaml(file)
    where = f"{file.parent.name}/study.yaml"
    keys = read(StudyKeys, data, where)
    _check_case_sets(keys, where)
    _check_fitted_range(keys, where)
    variants = _variants(keys, file.parent, where)
    headline = _case(keys.headline_case, variants, f"{where}: headline")
    metrics = _metrics(keys, where)
    study = Study(
        **{**vars(keys), "metrics": metrics},
        name=file.parent.name,
        folder=file.parent,
        variants=tuple(replace(variant, headline=headline) for variant in variants),
        headline=headline,
        captured=_captured(keys, variants, headline, where),
        claims=_claims(keys, variants, metrics, headline, where),
    )
    bounds = digests(data)
    claims = (replace(claim, bounds=bounds.get(claim.id, ())) for claim in study.claims)
    study = replace(study, claims=tuple(claims))
    if study.goal is not None:
        steps = [variant.name for variant in variants if variant.role == "step"]
        require_known(f"{where}: goal", study.goal, steps)
    check_calibration(study, where)
    return study


def _check_case_sets(study: StudyKeys, where: str) -> None:
    """Expand every case set once, so that a fault is found even in a set that no variant uses."""
    for name, cases in study.case_sets.items():
        here = f"{where}: cases.{name}"
        if unknown := sorted(set(cases.metrics or ()) - set(study.metrics)):
            raise FieldError(f"{here}.metrics", f"some of {list(study.metrics)}", unknown[0])
        _expand(cases, study.constants, here)


def _variants(study: StudyKeys, folder: Path, where: str) -> tuple[Variant, ...]:
    names = [entry.name for entry in study.entries]
    refuse_repeats(f"{where}: variants", names)
    ceilings = [entry.name for entry in study.entries if entry.role == "ceiling"]
    after = {entry.name: entry.after for entry in study.entries}
    for entry in study.entries:
        here = f"{where}: variants.{entry.name}"
        if entry.after is not None:
            require_known(f"{here}.after", entry.after, names)
            _refuse_circle(entry.name, after, f"{here}.after")
        for ceiling in entry.ceilings or ():
            require_known(f"{here}.ceilings", ceiling, ceilings)
        for ceiling in entry.beats:
            require_known(f"{here}.beats", ceiling, ceilings)
    variants = tuple(_variant(entry, study, folder, where) for entry in study.entries)
    for variant in variants:
        for case in variant.cases:
            access_of(variant, case, f"{where}: variants.{variant.name}.link")
    return variants


def _refuse_circle(name: str, after: Mapping[str, str | None], where: str) -> None:
    """FieldError if the chain of `after` leads back to `name`."""
    before: list[str] = []
    earlier = after.get(name)
    while earlier is not None and earlier not in before:
        before.append(earlier)
        earlier = after.get(earlier)
    if name in before:
        raise FieldError(where, f"a variant that does not come after {name} itself", after[name])


def _variant(entry: VariantKeys, study: StudyKeys, folder: Path, where: str) -> Variant:
    here = f"{where}: variants.{entry.name}"
    for name in entry.constants:
        require_known(f"{here}.constants", name, sorted(study.constants))
    constants = {**study.constants, **entry.constants}
    if both := sorted(set(constants) & set(entry.options)):
        raise FieldError(f"{here}.options", "names that no constant has", both[0])
    return Variant(
        **{**vars(entry), "constants": constants},
        path=_source(folder, entry, here),
        cases=_cases(entry, study.case_sets, constants, here, where),
        payload=study.case_sets[entry.case_sets[0]].payload_bytes,
    )


def _source(folder: Path, entry: VariantKeys, where: str) -> Path:
    """The source file of the variant."""
    stem = entry.source or entry.name
    found = [path for suffix in SOURCE_SUFFIXES if (path := folder / f"{stem}{suffix}").exists()]
    if len(found) != 1:
        expected = f"exactly one of {[stem + suffix for suffix in SOURCE_SUFFIXES]} in the folder"
        raise FieldError(f"{where}.source", expected, [path.name for path in found])
    (path,) = found
    if path.suffix == ".cu" and "gpu" not in entry.needs:
        raise FieldError(
            f"{where}.needs", "gpu among them, for a .cu source", list(entry.needs) or None
        )
    return path


def _cases(
    entry: VariantKeys,
    sets: Mapping[str, CaseSet],
    constants: Mapping[str, int],
    here: str,
    where: str,
) -> tuple[Case, ...]:
    """The cases of a variant's case sets, evaluated with its constants. Sets under `full` add
    the cases that the others lack."""

    def of_sets(names: Iterable[str], key: str) -> list[Case]:
        for name in names:
            require_known(f"{here}.{key}", name, sorted(sets))
        cases = [
            case
            for name in names
            for case in _expand(sets[name], constants, f"{where}: cases.{name}")
        ]
        refuse_repeats(f"{here}.{key}", [case.id for case in cases])
        return cases

    usual = of_sets(entry.case_sets, "cases")
    known = {case.id for case in usual}
    wider = of_sets(entry.full, "full")
    return (*usual, *(replace(case, grid="full") for case in wider if case.id not in known))


def _expand(cases: CaseSet, constants: Mapping[str, int], where: str) -> list[Case]:
    """One case for each combination of the values of the keys of a set."""
    found = []
    for values in itertools.product(*cases.values.values()):
        point: dict[str, CaseValue] = dict(zip(cases.values, values, strict=True))
        try:
            payload = evaluate(cases.payload_bytes, {**constants, **point})
        except ValueError as error:
            raise FieldError(
                f"{where}.payload_bytes",
                f"whole-number arithmetic of {sorted({**constants, **point})} ({error})",
                cases.payload_bytes,
            ) from error
        if payload < 0:
            raise FieldError(f"{where}.payload_bytes", "a value of at least 0", payload)
        repeats = cases.samples, cases.visits, cases.every, cases.warm
        found.append(Case(point, payload, cases.grid, cases.metrics, *repeats))
    return found


def _captured(
    study: StudyKeys, variants: Sequence[Variant], headline: str, where: str
) -> tuple[Captured, ...]:
    """The cases of captures: the headline, unless study.yaml names others."""
    found = []
    for n, entry in enumerate(study.captured_cases):
        for name in entry.constants:
            require_known(f"{where}: captured[{n}].constants", name, sorted(study.constants))
        case = _case(entry.case, variants, f"{where}: captured[{n}].case")
        found.append(Captured(case, entry.constants))
    return tuple(found) or (Captured(headline, {}),)


def _case(values: Mapping[str, CaseValue], variants: Iterable[Variant], where: str) -> str:
    """The id of a case, with its keys in the order of the variants' cases."""
    for variant in variants:
        for case in variant.cases:
            if dict(case.values) == values:
                return case.id
    raise FieldError(where, "a case that some variant has", case_id(values))


def _metrics(study: StudyKeys, where: str) -> dict[str, Metric]:
    metrics = {name: Metric(**vars(entry), name=name) for name, entry in study.metrics.items()}
    for metric in metrics.values():
        if metric.share and metric.unit != "1":
            raise FieldError(f"{where}: metrics.{metric.name}.unit", "1 of a share", metric.unit)
        whole = metrics.get(metric.part_of)
        if metric.part_of and (whole is None or (whole.unit, whole.part_of) != (metric.unit, "")):
            expected = f"a metric in {metric.unit} that is not a part itself"
            raise FieldError(f"{where}: metrics.{metric.name}.part_of", expected, metric.part_of)
    return metrics


def _check_fitted_range(study: StudyKeys, where: str) -> None:
    for key, (low, high) in study.fitted_range.items():
        here = f"{where}: fitted_range.{key}"
        sets = study.case_sets.values()
        values = [value for cases in sets for value in cases.values.get(key, ())]
        if not values:
            raise FieldError(here, "a key of the cases", key)
        numbers = [value for value in values if isinstance(value, int)]
        if len(numbers) < len(values):
            raise FieldError(here, "a key whose values are numbers", values)
        if not any(low <= number <= high for number in numbers):
            raise FieldError(here, f"a range that holds one of {values}", [low, high])


def _claims(
    study: StudyKeys,
    variants: Iterable[Variant],
    metrics: Mapping[str, Metric],
    headline: str,
    where: str,
) -> tuple[Claim, ...]:
    subjects = Subjects(
        cases={variant.name: {case.id for case in variant.cases} for variant in variants},
        units={name: metric.unit for name, metric in metrics.items()},
        shares={name for name, metric in metrics.items() if metric.share},
        headline=headline,
    )
    ours = study.write_up is None
    return parse_claims(study.claim_entries, subjects, where, ours=ours)
