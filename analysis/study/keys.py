"""The keys of a study.yaml: what each holds and means. The reference page shows these texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Final, Literal, get_args

from pydantic import AfterValidator, BaseModel, Field, Strict
from pydantic.dataclasses import dataclass

from analysis.base.keys import KEYS, Count, Name, Natural, Sentence, Unique, expects
from analysis.base.quantities import quantity
from analysis.base.statistics import Kind, kind_of
from analysis.study.claims.claim import Claim

Grid = Literal["smoke", "default", "full"]
GRIDS: Final = get_args(Grid)
Role = Literal["step", "reference", "ceiling", "beyond", "shipped"]
ROLES: Final = get_args(Role)
CaptureKind = Literal["counters", "timeline"]
CAPTURE_KINDS: Final = get_args(CaptureKind)
"""Kinds of captures of a variant; each is a file <variant>.<kind>.csv next to its samples."""
SEVERAL_GPUS: Final = "gpus>="
"""Prefix of a need of several GPUs that can access each other's memory."""
PACKAGE_NEEDS: Final = ("torch", "rmm", "cupy")
"""Needs that are Python packages."""
NEED: Final = (
    r"gpu|sm_\d{2,3}[af]?|cuda>=\d{1,3}\.\d{1,3}|managed|libfabric|"
    rf"{'|'.join(PACKAGE_NEEDS)}|{SEVERAL_GPUS}([2-9]|[1-9]\d)"
)
_NEEDS: Final = (
    "gpu, sm_<NN>, cuda>=<X.Y>, torch, rmm, cupy, managed, libfabric or gpus>=<2 or more>"
)
_WORD: Final = "[A-Za-z0-9_.-]*[A-Za-z_.-][A-Za-z0-9_.-]*"


def case_id(values: Mapping[str, CaseValue]) -> str:
    """The name of a case in results: `key=value` joined by commas."""
    return ",".join(f"{key}={value}" for key, value in values.items())


CaseValue = Annotated[
    Annotated[int, Strict(), Field(ge=0)] | Annotated[str, Field(pattern=f"^{_WORD}$")],
    expects(f"a whole number of at least 0 or a name like {_WORD}"),
    Field(title="whole number or word"),
]
if TYPE_CHECKING:
    CaseOfKeys = str
else:  # the id of a case that is written as a mapping
    CaseOfKeys = Annotated[Mapping[str, CaseValue], Field(min_length=1), AfterValidator(case_id)]
CaseFilter = Annotated[Mapping[str, Unique[CaseValue]], Field(min_length=1)]
Constants = Mapping[Name, Count]
Expression = Annotated[
    Annotated[int, Strict()] | str,
    expects("a whole number or an expression"),
    Field(title="text or whole number"),
]
Need = Annotated[str, Field(pattern=f"^({NEED})$"), expects(_NEEDS)]


@dataclass(frozen=True, kw_only=True, config=KEYS)
class WriteUp:
    title: str
    """Title of the text."""
    date: Annotated[str | None, Field(strict=True)]
    """Its date as the text gives it, in quotation marks; null where it gives none."""
    address: Sentence = ""
    """Its address on the web, if it has one."""


@dataclass(frozen=True, kw_only=True, config=KEYS)
class Metric:
    """A measured quantity. A part shows where a time goes, and never compares variants."""

    unit: Literal["s", "B", "J", "1", "B/s"]
    """SI base unit of its values; 1 for counts and shares."""
    label: str
    """Name of the metric in charts and tables."""
    part_of: Name = ""
    """The time that this one is part of, such as the time of one call of an operation."""
    share: bool = False
    """Whether its values, in unit 1, are shares of a whole. They are written as percentages."""

    @property
    def clock(self) -> str:
        """The label of a time without the event that ends it: `host time`."""
        return self.label.partition(" until ")[0]

    @property
    def values(self) -> Kind:
        """The kind of its values."""
        return kind_of(self.unit, is_share=self.share)

    @property
    def written_unit(self) -> str:
        """The unit in which pages write its values."""
        return "%" if self.share else self.unit

    def write(self, value: float) -> str:
        """A value as text for pages."""
        return quantity(value, self.written_unit)


class CaseSet(BaseModel, extra="allow", frozen=True, use_attribute_docstrings=True):
    """Every key that is not listed here is a key of the cases, with its values in a list."""

    __pydantic_extra__: dict[Name, Annotated[Unique[CaseValue], Field(min_length=1)]] = Field(
        init=False
    )

    payload_bytes: Expression
    """Bytes that the operation delivers, or 0: whole-number arithmetic (+, -, *, //) of the case's
    keys and the constants."""
    grid: Literal["default", "full"] = "default"
    """The smallest grid that measures these cases."""
    metrics: Unique[Name] | None = None
    """Those of the study's metrics that the engine takes in these cases; by default all."""
    samples: Count | None = None
    """Maximum number of samples of each of these metrics per visit."""
    visits: Count = 1
    """Number of times that a round checks and times these cases. All variants of a case alternate,
    so that a disturbance affects no comparison."""
    warm: bool = False
    """Whether host times follow the previous launch without a flush of the L2. Device times always
    follow a flush."""
    every: Count = 1
    """Only one in this many rounds measures these cases, the first one always."""
    device_above_host: Sentence = ""
    """Why device times exceed host times here; the publication check reports others."""

    @property
    def values(self) -> Mapping[str, tuple[CaseValue, ...]]:
        """The values of the cases' keys, in the order of study.yaml."""
        return self.model_extra or {}


@dataclass(frozen=True, kw_only=True, config=KEYS)
class Captured:
    case: CaseOfKeys
    """Keys and values of a case."""
    constants: Constants = field(default_factory=dict)
    """Constants of the study that have another value in captures."""


@dataclass(frozen=True, kw_only=True, config=KEYS)
class VariantKeys:
    name: Name
    """Names the variant in results and on pages; it cannot change once measured."""
    role: Role
    """A step of the journey, a reference that a user would write, a ceiling that no step can
    exceed, what goes beyond the write-up, or an operator that a package ships."""
    title: Sentence
    """The heading of its section."""
    idea: Sentence = ""
    """Why it should be faster, in a sentence or two; after a blank line, notes for its section."""
    after: Name | None = None
    """The variant it is compared with, and whose source its difference is shown to."""
    ceilings: Unique[Name] | None = None
    """The ceilings that bound it; by default all. Pages give its rate as a share of the fastest of
    these. A variant with an empty list cannot be the fastest of the study."""
    beats: Mapping[Name, Sentence] = field(default_factory=dict)
    """Ceilings that it beats, with the reason; the publication check reports others."""
    source: Name | None = None
    """Stem of its source file (.cu, .cpp or .py), by default its name. Entries may share a file."""
    case_sets: Annotated[Unique[str], Field(min_length=1, alias="cases")]
    """The case sets it is measured in."""
    full: Annotated[Unique[str], Field(min_length=1)] = ()
    """Case sets that only the full grid measures, except cases that are among `cases`, too."""
    workload: Name = "workload"
    """Stem of the Python file whose Workload prepares its inputs and binds it."""
    needs: Unique[Need] = ()
    """What a machine must have to run it: gpu, sm_90 (or another architecture), cuda>=12.8 (or
    another version), torch, rmm (RAPIDS RMM 26.06 or newer, as the package librmm), cupy, managed,
    libfabric, or gpus>=2 (or more): GPUs that can access each other's memory. If one is missing,
    the variant is skipped, and the results say why. A .cu source needs gpu."""
    packages: Unique[str] = ()
    """Packages of env/peers.toml that a shipped operator calls. Another version makes its results
    stale. If one does not load, the variant is skipped, and the results say why. A shipped operator
    may also need torch, rmm or cupy instead; the run's host has their versions."""
    flags: tuple[str, ...] = ()
    """Added to the compiler's command line."""
    constants: Constants = field(default_factory=dict)
    """Its values of the study's constants, where they differ."""
    options: Annotated[Mapping[Name, Name], Field(min_length=1)] = field(default_factory=dict)
    """Words that select how this variant works: macros in C++ (`memory: pinned` becomes
    -DMEMORY=pinned), `variant.options` in Python."""
    captures: Unique[CaptureKind] = CAPTURE_KINDS
    """What is captured for the headline case; by default everything."""
    host_work: bool = False
    """Whether the CPU takes part in the operation, so that gpu_time does not compare it."""
    clock: Literal["cpp", "python"] = "cpp"
    """What takes its host times: the bindings of its module (kernels/common/host_clock.h), or
    Python, whose call is then part of the time, as pages say."""
    copies_alone: bool = False
    """Whether its work is nothing but copies by copy engines. Behind a kernel, such a copy begins
    later than on an idle GPU, because the copy engine polls. So pages say that its device time is
    of a copy behind a kernel, and host time leads."""
    waits: bool = False
    """Whether its call waits for the GPU, so that its device time contains the host's calls, as
    pages say; `host_work` implies it."""
    link: Mapping[str, Expression] | None = None
    """How the variant reads host memory, for predictions of the link model: whole-number arithmetic
    of the case's keys and the constants."""


@dataclass(frozen=True, kw_only=True, config=KEYS)
class StudyKeys:
    title: Sentence
    """The heading that the site gives the study."""
    question: Sentence
    """What the study asks, in a sentence or two."""
    write_up: WriteUp | None = None
    """The published text that this study reproduces."""
    constants: Constants = field(default_factory=dict)
    """Whole numbers for expressions, and for C++ as macros (token_bytes becomes TOKEN_BYTES)."""
    budget_s: Count
    """Seconds that measuring the whole study in the default grid should take at most."""
    calibrates: bool = False
    """Whether the link model's parameters are fitted to the results of this study."""
    fitted_range: Mapping[str, tuple[Natural, Natural]] = field(default_factory=dict)
    """Lowest and highest value of a case's key, by key, that the link model is fitted to. Cases
    beyond these show how far the model extrapolates."""
    crosses_once: tuple[CaseFilter, ...] = ()
    """Cases in which every byte of the payload crosses the host link once: those that have one of
    the values of each key. The publication check reports rates there beyond that of the link."""
    limit: tuple[Name, Name] | None = None
    """Another study and its variant with the highest possible rate, for the home page; of a study
    without ceilings."""
    imports: Unique[str] = ()
    """Modules of the workload to import once, before the rounds, if they are installed."""
    telemetry: bool = True
    """Sample NVML while cells are measured; off for studies that measure nanoseconds."""
    metrics: Annotated[Mapping[Name, Metric], Field(min_length=1)]
    """The measured quantities, by name. The engine takes gpu_time, host_time and submit_time, the
    workload all others."""
    case_sets: Annotated[Mapping[Name, CaseSet], Field(min_length=1, alias="cases")]
    """Sets of cases, by name. Every key that is not listed here is a key of the cases, with its
    values in a list; the set has a case for each combination."""
    headline: CaseOfKeys
    """Keys and values of the one case that claims, the home page and captures use."""
    goal: Name | None = None
    """The step that the home page compares with the first; by default the fastest."""
    captured: Annotated[tuple[Captured, ...], Field(min_length=1)] = ()
    """Cases of counters and timelines, instead of the headline: a profiler saves all memory that a
    kernel can reach. Each variant is captured in the first of these that it has."""
    entries: Annotated[tuple[VariantKeys, ...], Field(min_length=1, alias="variants")]
    """The ways of doing the operation, in the order of the journey."""
    withdrawn: Unique[Name] = ()
    """Ids of claims that were removed after runs had recorded their bounds."""
    claims: Annotated[tuple[Claim, ...], Field(min_length=1)] = ()
    """The claims of the write-up and of this project, each with its test."""
