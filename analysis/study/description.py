"""A study as its study.yaml describes it: variants, cases, metrics, claims."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from analysis.base.errors import FieldError, require_known
from analysis.study.claims.claim import Bounds
from analysis.study.keys import GRIDS, SEVERAL_GPUS, CaseValue, StudyKeys, VariantKeys, case_id

HOST_TIMES = ("host_time", "submit_time")
"""Metrics that an operation's launcher takes."""


@dataclass(frozen=True)
class Case:
    """One point of a study: keys in study.yaml's order, and the bytes that one operation delivers.

    All other fields are keys of the case set in study.yaml. The grid is `full`, too, for a case
    that a variant has in the full grid only.
    """

    values: Mapping[str, CaseValue] = field(hash=False)
    payload_bytes: int
    grid: str
    metrics: tuple[str, ...] | None = None
    samples: int | None = None
    visits: int = 1
    every: int = 1
    warm: bool = False
    device_above_host: str = ""

    @cached_property
    def id(self) -> str:
        """`key=value` joined by commas; the name of this case in results."""
        return case_id(self.values)

    def __getitem__(self, key: str) -> CaseValue:
        return self.values[key]

    def number(self, key: str) -> int:
        """The whole number under `key`; FieldError if the value is not a whole number."""
        value = self.values.get(key)
        if not isinstance(value, int):
            raise FieldError(f"case {self.id}: {key}", "a whole number", value)
        return value


def parse_case(case: str) -> dict[str, CaseValue]:
    """The keys and values of a case id; whole numbers become int."""
    pairs = (part.partition("=") for part in case.split(","))
    return {key: int(value) if value.isdigit() else value for key, _, value in pairs}


@dataclass(frozen=True, kw_only=True)
class Variant(VariantKeys):
    """One way of doing the operation: its keys in study.yaml, and what these refer to.

    `path` is its source file, `payload` the expression for payload_bytes. `constants` includes the
    unchanged ones of the study. `headline` is the id of the study's headline case, even if the
    variant lacks it.
    """

    path: Path
    cases: tuple[Case, ...]
    payload: str | int
    headline: str = ""

    def __hash__(self) -> int:
        return hash((self.name, self.path))

    @property
    def is_compiled(self) -> bool:
        return self.path.suffix != ".py"

    @property
    def on_gpu(self) -> bool:
        return "gpu" in self.needs

    @property
    def gpus(self) -> int:
        """Number of GPUs, if it uses any."""
        counts = (need.partition(SEVERAL_GPUS)[2] for need in self.needs)
        return max((int(count) for count in counts if count), default=1)

    @property
    def program(self) -> tuple[object, ...]:
        """Identity of the program: equal for two entries of one program."""
        settings = (dict(self.constants), dict(self.options))
        return self.path, self.flags, self.needs, self.packages, self.clock, *settings

    def case(self, id: str) -> Case | None:
        return next((case for case in self.cases if case.id == id), None)

    def in_grid(self, grid: str) -> tuple[Case, ...]:
        """The cases of this variant in `grid`. The smoke grid has only the headline, or the
        cheapest case if the variant lacks that."""
        if grid == "smoke":
            cheapest = min(self.cases, key=lambda case: case.payload_bytes)
            return (self.case(self.headline) or cheapest,)
        allowed = GRIDS[: GRIDS.index(grid) + 1]
        return tuple(case for case in self.cases if case.grid in allowed)


@dataclass(frozen=True, kw_only=True)
class Study(StudyKeys):
    """A study: its keys in study.yaml, and what these refer to."""

    name: str
    folder: Path
    variants: tuple[Variant, ...]

    @property
    def root(self) -> Path:
        """The repository, of which the study's folder is at depth two."""
        return self.folder.parents[1]

    @property
    def bindings(self) -> Path | None:
        """Path of bindings.cpp, which exists only in studies with compiled variants."""
        path = self.folder / "bindings.cpp"
        return path if path.exists() else None

    def variant(self, name: str) -> Variant:
        """The variant of this name; FieldError lists all names."""
        if name not in self._by_name:
            require_known(f"study {self.name}: variant", name, self.variant_names)
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Variant]:
        return {variant.name: variant for variant in self.variants}

    @property
    def variant_names(self) -> list[str]:
        return [variant.name for variant in self.variants]

    @cached_property
    def subjects(self) -> list[Variant]:
        """All variants but references that repeat another one, to count false differences."""
        return [v for v in self.variants if v.role != "reference" or not self.is_repeat(v)]

    def is_repeat(self, variant: Variant) -> bool:
        """Whether the variant repeats its `after`: the same file with the same settings."""
        after = variant.after
        return after is not None and variant.program == self.variant(after).program

    def with_role(self, *roles: str) -> list[Variant]:
        return [variant for variant in self.subjects if variant.role in roles]

    def ceilings_of(self, variant: Variant) -> list[Variant]:
        """The ceilings of this variant: pages give its rate as a share of theirs."""
        names = variant.ceilings
        return [c for c in self.with_role("ceiling") if names is None or c.name in names]

    @property
    def has_link(self) -> bool:
        """Whether the link model predicts any of its variants."""
        return any(variant.link for variant in self.variants)

    @property
    def case_keys(self) -> list[str]:
        """The keys of all cases, in the order of study.yaml."""
        cases = (case for variant in self.variants for case in variant.cases)
        return list(dict.fromkeys(key for case in cases for key in case.values))

    @cached_property
    def payloads(self) -> Mapping[tuple[str, str], int]:
        """Bytes that one operation delivers, by the names of variants and the ids of cases."""
        return {(v.name, case.id): case.payload_bytes for v in self.variants for case in v.cases}

    def shown_case(self, variant: Variant) -> Case:
        """The headline case, or the largest case of the default grid if the variant lacks that."""
        usual = variant.in_grid("default") or variant.cases
        largest = max(usual, key=lambda case: case.payload_bytes)
        return variant.case(self.headline) or largest

    def captured_case(self, variant: Variant) -> str | None:
        """The first case for profilers that the variant has, by its id, or None."""
        cases = [captured.case for captured in self.captured] or [self.headline]
        return next((case for case in cases if variant.case(case)), None)

    @property
    def units(self) -> dict[str, str]:
        """SI base units by metric."""
        return {name: metric.unit for name, metric in self.metrics.items()}

    @property
    def time_metrics(self) -> list[str]:
        """Metrics that time whole operations, in the order of study.yaml."""
        return [name for name, m in self.metrics.items() if m.unit == "s" and not m.part_of]

    def clock_of(self, variant: Variant, metric: str) -> str:
        """The label of one of the variant's times, with what is special about its clock."""
        label = self.metrics[metric].label
        if metric == "gpu_time" and variant.copies_alone:
            return f"{label} behind a kernel"
        if metric == "gpu_time" and (variant.host_work or variant.waits):
            return f"{label} with the host's calls"
        if metric in HOST_TIMES and variant.clock == "python":
            return f"{label}, timed in Python"
        return label

    def metrics_for(self, *variants: Variant) -> list[str]:
        """Time metrics that may be used to compare `variants`, the preferred one first: of copies
        alone a host time."""
        times = self.time_metrics
        if any(variant.host_work for variant in variants):
            return [name for name in times if name != "gpu_time"]
        if all(variant.copies_alone for variant in variants):
            return sorted(times, key=lambda name: name == "gpu_time")
        return times

    @cached_property
    def bounds(self) -> frozenset[str]:
        """The digest of every comparison of its claims."""
        return frozenset(digest for claim in self.claims for digest in claim.bounds)

    def bounds_of(self, variant: str, *, counted: bool = False) -> Bounds:
        """The bounds of the claims that compare a variant, as run files name them.

        `counted`: only those that take a profile of it.
        """
        return {
            claim.id: list(claim.bounds)
            for claim in self.claims
            if variant in claim.variants and not claim.on_rows
            if claim.on_counters or not counted
        }

    def comparisons(self) -> Iterator[tuple[Variant, Variant]]:
        """Pairs (variant, other) to compare: with the variant's `after`; a step with all
        references, shipped operators and its ceilings; a reference with the first one."""
        references = self.with_role("reference")
        for variant in self.variants:
            against = [self.variant(variant.after)] if variant.after else []
            if variant.role in ("step", "beyond"):
                against += [*references, *self.with_role("shipped"), *self.ceilings_of(variant)]
            elif variant in references:
                against += references[:1]
            yield from ((variant, other) for other in dict.fromkeys(against) if other != variant)

    def companions(self, name: str) -> list[Variant]:
        """The variants to measure together with `name`: itself and both sides of its comparisons,
        because ratios pair samples of one run. All of a calibration, because its parameters belong
        to one host.
        """
        self.variant(name)  # FieldError for an unknown one
        if self.calibrates:
            return list(self.variants)
        pairs = [{one.name, other.name} for one, other in self.comparisons()]
        names = {name}.union(*(pair for pair in pairs if name in pair))
        return [candidate for candidate in self.variants if candidate.name in names]


def calibrating(studies: Mapping[str, Study]) -> list[str]:
    """Names of the studies that the parameters of machines are fitted to."""
    return [study.name for study in studies.values() if study.calibrates]
