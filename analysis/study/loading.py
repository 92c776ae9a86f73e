"""Reads a study.yaml and checks what its schema cannot: references to names, cases and sources."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from analysis import ROOT
from analysis.base.errors import FieldError, refuse_repeats, require_known
from analysis.base.expression import evaluate
from analysis.base.schema import check, read_yaml
from analysis.study.access import access_of
from analysis.study.claims import Claim, Subjects, comparison_schema, parse_claims
from analysis.study.claims.bounds import digests
from analysis.study.description import (
    CAPTURE_KINDS,
    PEERS,
    Captured,
    Case,
    CaseValue,
    Metric,
    Study,
    Variant,
    case_id,
)

SOURCE_SUFFIXES: Final = (".cu", ".cpp", ".py")
NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
"""Of studies, variants and metrics."""
NOT_CASE_KEYS: Final = ("payload_bytes", "grid", "metrics", "samples", "visits", "every")
"""Keys of a case set that apply to every one of its cases."""

Entry = Mapping[str, Any]
"""A mapping in study.yaml that conforms to the schema."""


def discover(root: Path = ROOT) -> dict[str, Study]:
    """Every study of the repository by name: kernels/*/study.yaml and allocator/study.yaml.

    FieldError names the first invalid field, also where one study names another.
    """
    studies = {name: load_study(file) for name, file in _descriptions(root).items()}
    for name, study in studies.items():
        if study.limit is not None:
            where = f"{name}/study.yaml: limit"
            require_known(f"{where}.study", study.limit["study"], sorted(studies))
            of = studies[study.limit["study"]]
            require_known(f"{where}.variant", study.limit["variant"], of.variant_names)
    return studies


def find_study(name: str, root: Path = ROOT) -> Study:
    """The study `name` of the repository; FieldError lists those that it has."""
    files = _descriptions(root)
    require_known("study", name, sorted(files))
    return load_study(files[name])


def _descriptions(root: Path) -> dict[str, Path]:
    """The study.yaml of every study, by its name. FieldError where that cannot be one."""
    files = sorted([*root.glob("kernels/*/study.yaml"), *root.glob("allocator/study.yaml")])
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
    check(data, "study", where, {"comparison": comparison_schema()})
    _check_case_sets(data, where)
    variants = _variants(data, file.parent, where)
    headline = _case(data["headline"], variants, f"{where}: headline")
    metrics = _metrics(data["metrics"], where)
    return Study(
        name=file.parent.name,
        folder=file.parent,
        title=data["title"],
        question=data["question"],
        write_up=data.get("write_up"),
        variants=tuple(replace(variant, headline=headline) for variant in variants),
        headline=headline,
        captured=_captured(data, variants, headline, where),
        metrics=metrics,
        budget_s=data["budget_s"],
        telemetry=data.get("telemetry", True),
        tests=_files(file.parent, data.get("tests", []), f"{where}: tests"),
        imports=tuple(data.get("imports", [])),
        calibrates=data.get("calibrates", False),
        fitted_range=_fitted_range(data, where),
        constants=data.get("constants", {}),
        claims=_claims(data, variants, metrics, headline, where),
        limit=data.get("limit"),
        goal=_goal(data, variants, where),
    )


def _check_case_sets(data: Entry, where: str) -> None:
    """Expand every case set once, so that a fault is found even in a set that no variant uses."""
    for name, entry in data["cases"].items():
        here = f"{where}: cases.{name}"
        if unknown := sorted(set(entry.get("metrics", [])) - set(data["metrics"])):
            raise FieldError(f"{here}.metrics", f"some of {list(data['metrics'])}", unknown[0])
        _expand(entry, data.get("constants", {}), here)


def _variants(data: Entry, folder: Path, where: str) -> tuple[Variant, ...]:
    names = [entry["name"] for entry in data["variants"]]
    refuse_repeats(f"{where}: variants", names)
    ceilings = [entry["name"] for entry in data["variants"] if entry["role"] == "ceiling"]
    after = {entry["name"]: entry.get("after") for entry in data["variants"]}
    for entry in data["variants"]:
        here = f"{where}: variants.{entry['name']}"
        if "after" in entry:
            require_known(f"{here}.after", entry["after"], names)
            _refuse_circle(entry["name"], after, f"{here}.after")
        for ceiling in entry.get("ceilings", []):
            require_known(f"{here}.ceilings", ceiling, ceilings)
    variants = tuple(_variant(entry, data, folder, where) for entry in data["variants"])
    for variant in variants:
        for case in variant.cases:
            access_of(variant, case, f"{where}: variants.{variant.name}.link")
    return variants


def _refuse_circle(name: str, after: Mapping[str, str | None], where: str) -> None:
    """FieldError where the variants that come before `name` lead back to it."""
    before: list[str] = []
    earlier = after.get(name)
    while earlier is not None and earlier not in before:
        before.append(earlier)
        earlier = after.get(earlier)
    if name in before:
        raise FieldError(where, f"a variant that does not come after {name} itself", after[name])


def _variant(entry: Entry, data: Entry, folder: Path, where: str) -> Variant:
    here = f"{where}: variants.{entry['name']}"
    constants = data.get("constants", {})
    for name in entry.get("constants", {}):
        require_known(f"{here}.constants", name, sorted(constants))
    constants = constants | entry.get("constants", {})
    options = entry.get("options", {})
    if both := sorted(set(constants) & set(options)):
        raise FieldError(f"{here}.options", "names that no constant has", both[0])
    return Variant(
        name=entry["name"],
        role=entry["role"],
        title=entry["title"],
        idea=entry.get("idea", ""),
        after=entry.get("after"),
        path=_source(folder, entry, here),
        cases=_cases(entry, data["cases"], constants, here, where),
        payload=data["cases"][entry["cases"][0]]["payload_bytes"],
        needs=tuple(_need(need) for need in entry.get("needs", [])),
        flags=tuple(entry.get("flags", [])),
        constants=constants,
        options=options,
        host_work=entry.get("host_work", False),
        captures=tuple(entry.get("captures", CAPTURE_KINDS)),
        timed=_files(ROOT, entry.get("timed", []), f"{here}.timed"),
        link=entry.get("link"),
        ceilings=tuple(entry["ceilings"]) if "ceilings" in entry else None,
    )


def _need(need: str | Entry) -> str:
    return need if isinstance(need, str) else f"{PEERS}{need['peers']}"


def _source(folder: Path, entry: Entry, where: str) -> Path:
    """The source file of the variant."""
    stem = entry.get("source", entry["name"])
    found = [path for suffix in SOURCE_SUFFIXES if (path := folder / f"{stem}{suffix}").exists()]
    if len(found) != 1:
        expected = f"exactly one of {[stem + suffix for suffix in SOURCE_SUFFIXES]} in the folder"
        raise FieldError(f"{where}.source", expected, [path.name for path in found])
    (path,) = found
    if path.suffix == ".cu" and "gpu" not in entry.get("needs", []):
        raise FieldError(f"{where}.needs", "gpu among them, for a .cu source", entry.get("needs"))
    return path


def _files(folder: Path, names: Iterable[str], where: str) -> tuple[Path, ...]:
    """The files of these names below `folder`, which must be there."""
    paths = {name: (folder / name).resolve() for name in names}
    for name, path in paths.items():
        if not (path.is_file() and path.is_relative_to(folder.resolve())):
            raise FieldError(where, f"files below {folder.name}/", name)
    return tuple(paths.values())


def _cases(
    entry: Entry, sets: Mapping[str, Entry], constants: Mapping[str, int], here: str, where: str
) -> tuple[Case, ...]:
    """The cases of a variant's case sets, evaluated with its constants. Sets under `full` add what
    the others lack."""

    def of_sets(key: str) -> list[Case]:
        for name in entry.get(key, []):
            require_known(f"{here}.{key}", name, sorted(sets))
        cases = [
            case
            for name in entry.get(key, [])
            for case in _expand(sets[name], constants, f"{where}: cases.{name}")
        ]
        refuse_repeats(f"{here}.{key}", [case.id for case in cases])
        return cases

    usual = of_sets("cases")
    known = {case.id for case in usual}
    wider = [replace(case, grid="full") for case in of_sets("full") if case.id not in known]
    return (*usual, *wider)


def _expand(entry: Entry, constants: Mapping[str, int], where: str) -> list[Case]:
    """One case for each combination of the values of the keys of a set."""
    keys = [key for key in entry if key not in NOT_CASE_KEYS]
    metrics = tuple(entry["metrics"]) if "metrics" in entry else None
    cases = []
    for values in itertools.product(*(entry[key] for key in keys)):
        point: dict[str, CaseValue] = dict(zip(keys, values, strict=True))
        try:
            payload = evaluate(entry["payload_bytes"], {**constants, **point})
        except ValueError as error:
            raise FieldError(
                f"{where}.payload_bytes",
                f"whole-number arithmetic of {sorted({**constants, **point})} ({error})",
                entry["payload_bytes"],
            ) from error
        if payload < 0:
            raise FieldError(f"{where}.payload_bytes", "a value of at least 0", payload)
        repeats = entry.get("samples"), entry.get("visits", 1), entry.get("every", 1)
        cases.append(Case(point, payload, entry.get("grid", "default"), metrics, *repeats))
    return cases


def _captured(
    data: Entry, variants: Sequence[Variant], headline: str, where: str
) -> tuple[Captured, ...]:
    """What profilers see, the headline unless `data` says otherwise."""
    found = []
    for n, entry in enumerate(data.get("captured", ())):
        constants = entry.get("constants", {})
        for name in constants:
            field = f"{where}: captured[{n}].constants"
            require_known(field, name, sorted(data.get("constants", {})))
        case = _case(entry["case"], variants, f"{where}: captured[{n}].case")
        found.append(Captured(case, constants))
    return tuple(found) or (Captured(headline, {}),)


def _goal(data: Entry, variants: Iterable[Variant], where: str) -> str | None:
    goal: str | None = data.get("goal")
    if goal is not None:
        steps = [variant.name for variant in variants if variant.role == "step"]
        require_known(f"{where}: goal", goal, steps)
    return goal


def _case(values: Mapping[str, CaseValue], variants: Iterable[Variant], where: str) -> str:
    """The id of a case, with its keys in the order of the variants' cases."""
    for variant in variants:
        for case in variant.cases:
            if dict(case.values) == values:
                return case.id
    raise FieldError(where, "a case that some variant has", case_id(values))


def _metrics(entries: Mapping[str, Entry], where: str) -> dict[str, Metric]:
    metrics = {name: Metric(name, **entry) for name, entry in entries.items()}
    for metric in metrics.values():
        if metric.share and metric.unit != "1":
            raise FieldError(f"{where}: metrics.{metric.name}.unit", "1 of a share", metric.unit)
        whole = metrics.get(metric.part_of)
        if metric.part_of and (whole is None or (whole.unit, whole.part_of) != (metric.unit, "")):
            expected = f"a metric in {metric.unit} that is not a part itself"
            raise FieldError(f"{where}: metrics.{metric.name}.part_of", expected, metric.part_of)
    return metrics


def _fitted_range(data: Entry, where: str) -> dict[str, tuple[int, int]]:
    """The lowest and the highest value that is fitted, by key of the cases."""
    ranges = data.get("fitted_range", {})
    for key, (low, high) in ranges.items():
        here = f"{where}: fitted_range.{key}"
        values = [value for cases in data["cases"].values() for value in cases.get(key, [])]
        if key in NOT_CASE_KEYS or not values:
            raise FieldError(here, "a key of the cases", key)
        if not all(isinstance(value, int) for value in values):
            raise FieldError(here, "a key whose values are numbers", values)
        if not any(low <= value <= high for value in values):
            raise FieldError(here, f"a range that holds one of {values}", [low, high])
    return {key: (low, high) for key, (low, high) in ranges.items()}


def _claims(
    data: Entry,
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
    ours = "write_up" not in data
    return parse_claims(data.get("claims", []), subjects, where, digests(data), ours=ours)
