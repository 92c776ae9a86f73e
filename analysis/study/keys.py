"""The keys of a study.yaml: what each holds and means. The reference page shows these texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import BaseModel, BeforeValidator, Field, Strict
from pydantic.dataclasses import dataclass

from analysis.base.keys import KEYS, Count, Name, Natural, Sentence, Unique, expects
from analysis.study.claims.claim import Claim

Grid = Literal["smoke", "default", "full"]
GRIDS: Final = get_args(Grid)
Role = Literal["step", "reference", "ceiling", "beyond", "shipped"]
ROLES: Final = get_args(Role)
CaptureKind = Literal["counters", "timeline"]
CAPTURE_KINDS: Final = get_args(CaptureKind)
"""Kinds of captures of a variant; each is a file <variant>.<kind>.csv next to its samples."""
Unit = Literal["s", "B", "J", "1", "B/s"]
PEERS: Final = "peers: "
"""Prefix of a need of several GPUs that can access each other's memory."""
PACKAGE_NEEDS: Final = ("torch", "rmm")
"""Needs of Python packages, which analysis/toolchain/packages.py describes."""
MAX_GPUS: Final = 64
NEED: Final = re.compile(
    r"(gpu)|sm_(\d{2,3})[af]?|cuda>=(\d{1,3})\.(\d{1,3})"
    rf"|({'|'.join(PACKAGE_NEEDS)})|(managed)|(libfabric)|({PEERS}\d+)"
)
"""A need as text; its groups are gpu, the architecture, the two parts of the CUDA version, a
package, managed, libfabric and peers."""
_NEEDS: Final = (
    f"gpu, sm_<NN>, cuda>=<X.Y>, {', '.join(PACKAGE_NEEDS)}, managed, libfabric or"
    f" peers: <2 to {MAX_GPUS}>"
)
_WORD: Final = "[A-Za-z0-9_.-]*[A-Za-z_.-][A-Za-z0-9_.-]*"


def _need(value: Any) -> Any:
    """`peers: 2` as text."""
    match value:
        case {"peers": int() as gpus, **others} if not others and 2 <= gpus <= MAX_GPUS:
            return f"{PEERS}{gpus}"
    return value


_Whole = Annotated[int, Strict(), Field(ge=0)]
CaseValue = Annotated[
    _Whole | Annotated[str, Field(pattern=f"^{_WORD}$")],
    expects(f"a whole number of at least 0 or a name like {_WORD}"),
    Field(title="whole number or word"),
]
Case = Annotated[Mapping[str, CaseValue], Field(min_length=1)]
CaseFilter = Annotated[Mapping[str, Unique[CaseValue]], Field(min_length=1)]
Constants = Mapping[Name, Count]
Expression = Annotated[
    Annotated[int, Strict()] | str,
    expects("a whole number or an expression"),
    Field(title="text or whole number"),
]
Need = Annotated[
    str,
    Field(pattern=f"^({NEED.pattern})$"),
    BeforeValidator(_need),
    expects(_NEEDS),
    Field(
        title="text or peers with a whole number of at least 2",
        json_schema_extra={"type": ["string", "object"]},
    ),
]


@dataclass(frozen=True, kw_only=True, config=KEYS)
class WriteUp:
    title: str
    """Title of the text."""
    date: Annotated[str | None, Field(strict=True)]
    """Its date as the text gives it, in quotation marks; null where it gives none."""
    address: Sentence = ""
    """Its address on the web, if it has one."""


@dataclass(frozen=True, kw_only=True, config=KEYS)
class Limit:
    study: Name
    """Name of its folder."""
    variant: Name
    """Its name there."""


@dataclass(frozen=True, kw_only=True, config=KEYS)
class MetricKeys:
    unit: Unit
    """SI base unit of its values; 1 for counts and shares."""
    label: str
    """Name of the metric in charts and tables."""
    part_of: Name = ""
    """The time that this one is part of, such as the time of one call of an operation."""
    share: bool = False
    """Whether its values, in unit 1, are shares of a whole. They are written as percentages."""


class CaseSet(BaseModel, extra="allow", frozen=True, use_attribute_docstrings=True):
    """Every key that is not listed here is a key of the cases, with its values in a list."""

    __pydantic_extra__: dict[Name, Annotated[Unique[CaseValue], Field(min_length=1)]] = Field(
        init=False
    )

    payload_bytes: Expression
    """Bytes that the operation delivers: whole-number arithmetic (+, -, *, //) of the case's keys
    and the constants, 0 where it delivers none."""
    grid: Literal["default", "full"] = "default"
    """The smallest grid that measures these cases."""
    metrics: Unique[Name] | None = None
    """The study's metrics that the engine takes in these cases; by default all that it can take.
    Metrics that the workload takes itself are not affected."""
    samples: Count | None = None
    """Maximum number of samples of each of these metrics per visit."""
    visits: Count = 1
    """Number of times that a round checks and times these cases. All variants of a case alternate,
    so that a disturbance of one visit affects neither the other visits nor a comparison."""
    warm: bool = False
    """Whether host times follow the previous launch without a flush of the L2, as in a program that
    repeats the operation and does nothing else. Device times always follow a flush."""
    every: Count = 1
    """Only one in this many rounds measures these cases, the first one always. For cases that take
    seconds and repeat the operation themselves, or whose claims need no more rounds."""
    device_above_host: Sentence = ""
    """Why device times exceed host times here, if some do. The publication check reports all other
    such times."""

    @property
    def values(self) -> Mapping[str, tuple[CaseValue, ...]]:
        """The values of the cases' keys, in the order of study.yaml."""
        return self.model_extra or {}


@dataclass(frozen=True, kw_only=True, config=KEYS)
class CapturedKeys:
    case: Case
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
    """Why it should be faster: a sentence or two, which tables of steps show, and below a blank
    line what else is to be known."""
    after: Name | None = None
    """The variant it is compared with, and whose source its difference is shown to."""
    ceilings: Unique[Name] | None = None
    """The ceilings of the study that bound it; left out, all of them. Pages give its rate as a
    share of the fastest of these. A variant with an empty list is no contender for the fastest of
    the study."""
    beats: Mapping[Name, Sentence] = field(default_factory=dict)
    """Ceilings of the study that it is faster than, with the reason. The publication check reports
    any other ceiling that is beaten."""
    source: Name | None = None
    """Stem of its source file (.cu, .cpp or .py); left out, its name. Two entries may share one
    file."""
    case_sets: Annotated[Unique[str], Field(min_length=1, alias="cases")]
    """The case sets it is measured in."""
    full: Annotated[Unique[str], Field(min_length=1)] = ()
    """Case sets that only the full grid measures, for charts that go further than claims need.
    Cases that are among `cases`, too, are measured in every grid."""
    workload: Name = "workload"
    """Stem of the Python file whose Workload prepares its inputs and binds it."""
    needs: Unique[Need] = ()
    """What a machine must have to run it: gpu, sm_90 (or another architecture), cuda>=12.8 (or
    another version), torch, rmm (RAPIDS RMM 26.06 or newer, as the package librmm), managed,
    libfabric, or `peers: 2` (or more): that number of GPUs that can access each other's memory.
    Where one is missing, the variant is skipped and the results say why. A .cu source needs gpu."""
    packages: Unique[str] = ()
    """Packages of env/peers.toml that it calls: those of a shipped operator. Their versions belong
    to its code, so another version makes its results stale. Where one is not installed or does not
    load, the variant is skipped and the results say why."""
    flags: tuple[str, ...] = ()
    """Added to the compiler's command line."""
    constants: Constants = field(default_factory=dict)
    """Its values of the study's constants, where they differ."""
    options: Annotated[Mapping[Name, Name], Field(min_length=1)] = field(default_factory=dict)
    """Words that select how this variant works. They are compiled in as macros (`memory: pinned`
    becomes -DMEMORY=pinned) and passed to the workload as `variant.options`."""
    captures: Unique[CaptureKind] = CAPTURE_KINDS
    """What is captured for the headline case; by default everything."""
    host_work: bool = False
    """Whether the CPU takes part in the operation, so that it is timed synchronously and not
    compared by gpu_time."""
    clock: Literal["cpp", "python"] = "cpp"
    """What takes its host times: the bindings of its module (kernels/common/host_clock.h), or
    Python, whose call is then part of the time. Pages say `timed in Python`."""
    copies_alone: bool = False
    """Whether its work is nothing but copies by copy engines. In a stream that is held until all is
    enqueued, such a copy begins later than on an idle GPU, because the copy engine polls for the
    work before it. So its device time is of a copy behind a kernel; pages label it so, and host
    time leads."""
    waits: bool = False
    """Whether its call waits for the GPU, so that its stream cannot be held. Its device time then
    contains the host's calls, and pages label it so; `host_work` implies it."""
    link: Mapping[str, Expression] | None = None
    """How the variant reads host memory, for the link model; without it there is no prediction.
    Values are whole-number arithmetic of the case's keys and the constants."""


@dataclass(frozen=True, kw_only=True, config=KEYS)
class StudyKeys:
    title: Sentence
    """The heading that the site gives the study."""
    question: Sentence
    """What the study asks, in a sentence or two."""
    write_up: WriteUp | None = None
    """The published text that this study reproduces."""
    constants: Constants = field(default_factory=dict)
    """Whole-number parameters of the study. They are compiled in as macros (token_bytes becomes
    TOKEN_BYTES) and can be used in payload_bytes."""
    budget_s: Count
    """Seconds that measuring the whole study in the default grid should take at most."""
    calibrates: bool = False
    """Whether the link model's parameters are fitted to the results of this study."""
    fitted_range: Mapping[str, tuple[Natural, Natural]] = field(default_factory=dict)
    """Lowest and highest value of a case's key, by key, that the link model is fitted to. Cases of
    the calibration beyond these are only predicted, and show how far the model extrapolates."""
    crosses_once: tuple[CaseFilter, ...] = ()
    """Cases in which every byte of the payload crosses the host link once, whatever the variant:
    those that have one of the values of each key. No rate there can exceed that of the link; the
    publication check says where one does."""
    limit: Limit | None = None
    """A variant of another study that moves as many bytes as these could move at best. The home
    page compares the steps with it where the study has no ceilings."""
    imports: Unique[str] = ()
    """Modules that the workload imports where they are installed. They are imported once, before
    the rounds, instead of in each."""
    telemetry: bool = True
    """Sample NVML while cells are measured; off for studies that measure nanoseconds."""
    metrics: Annotated[Mapping[Name, MetricKeys], Field(min_length=1)]
    """The measured quantities, by name. The engine takes gpu_time, host_time and submit_time where
    they are listed; the workload takes all others."""
    case_sets: Annotated[Mapping[Name, CaseSet], Field(min_length=1, alias="cases")]
    """Sets of cases, by name. Every key below that is not listed here is a key of the cases, with
    its values in a list; the set has a case for each combination."""
    case_words: Mapping[str, str] = field(default_factory=dict)
    """Words for a case in a sentence, by `key` or `key=value`; `{}` or `{bytes}` is its value."""
    headline_case: Annotated[Case, Field(alias="headline")]
    """Keys and values of the one case that claims and the home page use, and captures unless
    `captured` says otherwise."""
    goal: Name | None = None
    """The step that all others lead to, where it is not the fastest: the home page compares it with
    the first."""
    captured_cases: Annotated[tuple[CapturedKeys, ...], Field(min_length=1, alias="captured")] = ()
    """Cases of counters and timelines, where they are not the headline: a profiler that repeats a
    kernel first saves all memory the kernel can reach. Each variant is captured in the first of
    these cases that it has."""
    entries: Annotated[tuple[VariantKeys, ...], Field(min_length=1, alias="variants")]
    """The ways of doing the operation, in the order of the journey."""
    withdrawn: Unique[Name] = ()
    """Ids of claims that were removed after runs had recorded their bounds. The publication check
    misses any other."""
    claims: Annotated[tuple[Claim, ...], Field(min_length=1)] = ()
    """The claims of the write-up and of this project, each with its test."""
