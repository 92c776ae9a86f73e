"""What a study.yaml says: variants, cases, metrics, claims. A folder with one is a study."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis import ROOT
from analysis.claims import Claim, Subjects, parse_claims
from analysis.errors import FieldError
from analysis.expression import evaluate
from analysis.schema import check, read_yaml

GRIDS = ("smoke", "default", "full")
SOURCE_SUFFIXES = (".cu", ".cpp", ".py")
CAPTURE_KINDS = ("ncu", "timeline")
"""What can be captured of a variant; each is a file <variant>.<kind>.csv beside its samples."""
NOT_CASE_KEYS = ("payload_bytes", "grid", "metrics", "samples", "visits")
"""Keys of a case set that say something of all its cases."""

CaseValue = int | str


@dataclass(frozen=True)
class Case:
    """One point of a study: keys in study.yaml's order, and the bytes one operation delivers.

    `metrics` are those of the study's that the engine takes here, None for all it can; `samples`,
    where it is not None, is how many a visit takes at most; `visits` is how often a round comes.
    """

    values: Mapping[str, CaseValue] = field(hash=False)
    payload_bytes: int
    grid: str
    metrics: tuple[str, ...] | None = None
    samples: int | None = None
    visits: int = 1

    @property
    def id(self) -> str:
        """`key=value` joined by commas; how results name this case."""
        return case_id(self.values)

    def __getitem__(self, key: str) -> CaseValue:
        return self.values[key]

    def number(self, key: str) -> int:
        """The whole number under `key`; FieldError where the case has something else there."""
        value = self.values.get(key)
        if not isinstance(value, int):
            raise FieldError(f"case {self.id}: {key}", "a whole number", value)
        return value


def case_id(values: Mapping[str, CaseValue]) -> str:
    return ",".join(f"{key}={value}" for key, value in values.items())


def parse_case(case: str) -> dict[str, CaseValue]:
    """The keys and values of a case id, whole numbers as int."""
    pairs = (part.partition("=") for part in case.split(","))
    return {key: int(value) if value.isdigit() else value for key, _, value in pairs}


@dataclass(frozen=True)
class Metric:
    """A quantity that is measured.

    `part_of` names the time that this one is a share of, or is empty: parts tell where a time goes,
    and are no clock to compare variants by.
    """

    name: str
    unit: str
    label: str
    part_of: str = ""


@dataclass(frozen=True)
class Variant:
    """One way of doing the operation.

    `path` is the one file that holds it; `payload` the expression behind payload_bytes. `link` says
    how it reads host memory, for analysis.model.access to work out.
    """

    name: str
    role: str
    title: str
    idea: str
    after: str | None
    path: Path
    cases: tuple[Case, ...]
    payload: str | int
    needs: tuple[str, ...]
    flags: tuple[str, ...]
    constants: Mapping[str, int] = field(hash=False)
    host_work: bool
    captures: tuple[str, ...]
    link: Mapping[str, str | int] | None = field(default=None, hash=False)

    @property
    def is_compiled(self) -> bool:
        return self.path.suffix != ".py"

    @property
    def on_gpu(self) -> bool:
        return "gpu" in self.needs

    def in_grid(self, grid: str) -> tuple[Case, ...]:
        """The cases of this variant that `grid` runs; smoke takes the cheapest alone."""
        if grid == "smoke":
            return (min(self.cases, key=lambda case: case.payload_bytes),)
        allowed = GRIDS[: GRIDS.index(grid) + 1]
        return tuple(case for case in self.cases if case.grid in allowed)


@dataclass(frozen=True)
class Study:
    name: str
    folder: Path
    title: str
    question: str
    write_up: Mapping[str, str | None] | None
    variants: tuple[Variant, ...]
    headline: str
    metrics: Mapping[str, Metric]
    budget_s: int
    telemetry: bool
    calibrates: bool
    constants: Mapping[str, int]
    claims: tuple[Claim, ...] = ()

    def variant(self, name: str) -> Variant:
        for variant in self.variants:
            if variant.name == name:
                return variant
        raise FieldError(f"study {self.name}: variant", f"one of {self.variant_names}", name)

    @property
    def variant_names(self) -> list[str]:
        return [variant.name for variant in self.variants]

    def with_role(self, *roles: str) -> list[Variant]:
        return [variant for variant in self.variants if variant.role in roles]

    @property
    def time_metrics(self) -> list[str]:
        """Times of whole operations, in the order of study.yaml."""
        return [
            n for n, metric in self.metrics.items() if metric.unit == "s" and not metric.part_of
        ]

    def metrics_for(self, *variants: Variant) -> list[str]:
        """Time metrics that may compare `variants`, the preferred first."""
        times = self.time_metrics
        if any(variant.host_work for variant in variants):
            return [name for name in times if name != "gpu_time"]
        return times

    def companions(self, name: str) -> list[Variant]:
        """`name` and what it is measured beside when measured alone: its `after`, the ceilings.

        A calibration is always measured whole: its parameters are those of one host.
        """
        variant = self.variant(name)
        if self.calibrates:
            return list(self.variants)
        names = {name, variant.after, *(ceiling.name for ceiling in self.with_role("ceiling"))}
        return [candidate for candidate in self.variants if candidate.name in names]

    def is_repeat(self, variant: Variant) -> bool:
        """Whether the variant is its `after` listed again: same file, flags, needs, constants."""
        if variant.after is None:
            return False
        before = self.variant(variant.after)
        return (variant.path, variant.flags, variant.needs, dict(variant.constants)) == (
            before.path,
            before.flags,
            before.needs,
            dict(before.constants),
        )

    @property
    def bindings(self) -> Path | None:
        path = self.folder / "bindings.cpp"
        return path if path.exists() else None

    @property
    def case_keys(self) -> list[str]:
        """Every key any case has, in the order of study.yaml."""
        keys: dict[str, None] = {}
        for variant in self.variants:
            for case in variant.cases:
                keys.update(dict.fromkeys(case.values))
        return list(keys)


def discover(root: Path = ROOT) -> dict[str, Study]:
    """Every study of the repository by name: kernels/*/study.yaml and allocator/study.yaml."""
    files = sorted([*root.glob("kernels/*/study.yaml"), *root.glob("allocator/study.yaml")])
    return {file.parent.name: load_study(file) for file in files}


def load_study(file: Path) -> Study:
    """Read and check one study.yaml. Raises FieldError naming the first field that is wrong."""
    data = read_yaml(file)
    where = f"{file.parent.name}/study.yaml"
    check(data, "study", where)
    constants = data.get("constants", {})
    sets = data["cases"]
    headline = data["headline"]
    entries = data["variants"]
    names = [entry["name"] for entry in entries]
    _refuse_repeats(names, f"{where}: variants")
    # Expanded once even where no variant takes a set, so that a fault in it is seen.
    for set_name, entry in sets.items():
        here = f"{where}: cases.{set_name}"
        if unknown := sorted(set(entry.get("metrics", [])) - set(data["metrics"])):
            raise FieldError(f"{here}.metrics", f"some of {list(data['metrics'])}", unknown[0])
        _expand(entry, constants, here)

    variants = []
    for entry in entries:
        here = f"{where}: variants.{entry['name']}"
        if "after" in entry and entry["after"] not in names:
            raise FieldError(f"{here}.after", f"one of {names}", entry["after"])
        for set_name in entry["cases"]:
            if set_name not in sets:
                raise FieldError(f"{here}.cases", f"one of {sorted(sets)}", set_name)
        own_constants = constants | entry.get("constants", {})
        cases = [
            case
            for set_name in entry["cases"]
            for case in _expand(sets[set_name], own_constants, f"{where}: cases.{set_name}")
        ]
        _refuse_repeats([case.id for case in cases], f"{here}.cases")
        path = _source(file.parent, entry.get("source", entry["name"]), here)
        if path.suffix == ".cu" and "gpu" not in entry.get("needs", []):
            raise FieldError(
                f"{here}.needs", "gpu among them, for a .cu source", entry.get("needs")
            )
        variants.append(
            Variant(
                name=entry["name"],
                role=entry["role"],
                title=entry["title"],
                idea=entry.get("idea", ""),
                after=entry.get("after"),
                path=path,
                cases=tuple(cases),
                payload=sets[entry["cases"][0]]["payload_bytes"],
                needs=tuple(entry.get("needs", [])),
                flags=tuple(entry.get("flags", [])),
                constants=own_constants,
                host_work=entry.get("host_work", False),
                captures=tuple(entry.get("captures", CAPTURE_KINDS)),
                link=entry.get("link"),
            )
        )
    all_cases = (case for variant in variants for case in variant.cases)
    shown = next((case.id for case in all_cases if dict(case.values) == headline), None)
    if shown is None:
        raise FieldError(f"{where}: headline", "a case that some variant has", case_id(headline))
    metrics = {name: Metric(name, **entry) for name, entry in data["metrics"].items()}
    for metric in metrics.values():
        whole = metrics.get(metric.part_of)
        if metric.part_of and (whole is None or (whole.unit, whole.part_of) != (metric.unit, "")):
            expected = f"a metric in {metric.unit} that is no part itself"
            raise FieldError(f"{where}: metrics.{metric.name}.part_of", expected, metric.part_of)
    subjects = Subjects(
        cases={variant.name: {case.id for case in variant.cases} for variant in variants},
        units={name: metric.unit for name, metric in metrics.items()},
        headline=shown,
    )
    return Study(
        name=file.parent.name,
        folder=file.parent,
        title=data["title"],
        question=data["question"],
        write_up=data.get("write_up"),
        variants=tuple(variants),
        headline=shown,
        metrics=metrics,
        budget_s=data["budget_s"],
        telemetry=data.get("telemetry", True),
        calibrates=data.get("calibrates", False),
        constants=constants,
        claims=parse_claims(data.get("claims", []), subjects, where, ours="write_up" not in data),
    )


def _expand(entry: Mapping[str, Any], constants: Mapping[str, int], where: str) -> list[Case]:
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
        grid = entry.get("grid", "default")
        often = entry.get("samples"), entry.get("visits", 1)
        cases.append(Case(point, payload, grid, metrics, *often))
    return cases


def _source(folder: Path, stem: str, where: str) -> Path:
    found = [path for suffix in SOURCE_SUFFIXES if (path := folder / f"{stem}{suffix}").exists()]
    if len(found) != 1:
        expected = f"exactly one of {[stem + suffix for suffix in SOURCE_SUFFIXES]} in the folder"
        raise FieldError(f"{where}.source", expected, [path.name for path in found])
    return found[0]


def _refuse_repeats(items: Iterable[str], where: str) -> None:
    seen: set[str] = set()
    for item in items:
        if item in seen:
            raise FieldError(where, "every entry once", item)
        seen.add(item)
