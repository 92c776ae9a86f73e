"""The keys of a study.yaml: what each holds and means. The reference page shows these texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import BeforeValidator, Field

from analysis.base.keys import (
    OTHERS,
    Boolean,
    Count,
    Keys,
    Maybe,
    Name,
    Natural,
    Sentence,
    Text,
    Unique,
    key,
    only,
)
from analysis.study.claims.loading import ClaimKeys

Grid = Literal["smoke", "default", "full"]
GRIDS: Final = get_args(Grid)
Role = Literal["step", "reference", "ceiling", "beyond"]
ROLES: Final = get_args(Role)
CaptureKind = Literal["counters", "timeline"]
CAPTURE_KINDS: Final = get_args(CaptureKind)
"""Kinds of captures of a variant; each is a file <variant>.<kind>.csv next to its samples."""
Unit = Literal["s", "B", "J", "1", "B/s"]
PEERS: Final = "peers: "
"""Prefix of a need of several GPUs that can access each other's memory."""

_WORD: Final = re.compile(r"(?![0-9]+\Z)[A-Za-z0-9_.-]+")


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


def _is_case_value(value: object) -> bool:
    if isinstance(value, str):
        return _WORD.fullmatch(value) is not None
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _need(value: Any) -> Any:
    """`peers: 2` as text."""
    match value:
        case {"peers": int() as gpus, **others} if not others and 2 <= gpus <= MAX_GPUS:
            return f"{PEERS}{gpus}"
    return value


CaseValue = Annotated[
    int | str,
    only(_is_case_value, f"a whole number of at least 0 or a name like {_WORD.pattern}"),
    Field(title="whole number or word"),
]
Case = Annotated[Mapping[Text, CaseValue], Field(min_length=1)]
CaseFilter = Annotated[Mapping[Text, Unique[CaseValue]], Field(min_length=1)]
Constants = Mapping[Name, Count]
Expression = Annotated[
    int | str,
    only(lambda value: type(value) in (int, str), "a whole number or an expression"),
    Field(title="text or whole number"),
]
Need = Annotated[
    str,
    BeforeValidator(_need),
    only(lambda value: NEED.fullmatch(f"{_need(value)}") is not None, _NEEDS),
    Field(
        title="text or peers with a whole number of at least 2",
        json_schema_extra={"type": ["string", "object"]},
    ),
]


@dataclass(frozen=True)
class WriteUp(Keys):
    title: Text = key("Title of the text.")
    date: Annotated[str | None, Field(strict=True)] = key(
        "Its date as the text gives it, in quotation marks; null where it gives none."
    )
    address: Sentence = key("Its address on the web, if it has one.", "")


@dataclass(frozen=True)
class Limit(Keys):
    study: Name = key("Name of its folder.")
    variant: Name = key("Its name there.")


@dataclass(frozen=True)
class MetricKeys(Keys):
    unit: Unit = key("SI base unit of its values; 1 for counts and shares.")
    label: Text = key("Name of the metric in charts and tables.")
    part_of: Name = key(
        "The time that this one is part of, such as the time of one call of an operation.", ""
    )
    share: Boolean = key(
        "Whether its values, in unit 1, are shares of a whole. They are written as percentages.",
        False,
    )


@dataclass(frozen=True)
class CaseSet(Keys):
    """Every key that is not listed here is a key of the cases, with its values in a list."""

    payload_bytes: Expression = key(
        "Bytes that the operation delivers: whole-number arithmetic (+, -, *, //) of the case's"
        " keys and the constants, 0 where it delivers none."
    )
    values: Mapping[Name, Annotated[Unique[CaseValue], Field(min_length=1)]] = key(
        "The keys of the cases.", alias=OTHERS
    )
    grid: Literal["default", "full"] = key(
        "The smallest grid that measures these cases.", "default"
    )
    metrics: Maybe[Unique[Name]] = key(
        "The study's metrics that the engine takes in these cases; by default all that it can"
        " take. Metrics that the workload takes itself are not affected.",
        None,
    )
    samples: Maybe[Count] = key(
        "Maximum number of samples of each of these metrics per visit.", None
    )
    visits: Count = key(
        "Number of times that a round checks and times these cases. All variants of a case"
        " alternate, so that a disturbance of one visit affects neither the other visits nor a"
        " comparison.",
        1,
    )
    warm: Boolean = key(
        "Whether host times follow the previous launch without a flush of the L2, as in a program"
        " that repeats the operation and does nothing else. Device times always follow a flush.",
        False,
    )
    every: Count = key(
        "Only one in this many rounds measures these cases, the first one always. For cases that"
        " take seconds and repeat the operation themselves, or whose claims need no more rounds.",
        1,
    )


@dataclass(frozen=True)
class CapturedKeys(Keys):
    case: Case = key("Keys and values of a case.")
    constants: Constants = key(
        "Constants of the study that have another value in captures.", factory=dict
    )


@dataclass(frozen=True, kw_only=True)
class VariantKeys(Keys):
    name: Name = key("Names the variant in results and on pages; it cannot change once measured.")
    role: Role = key(
        "A step of the journey, a reference that a user would write, a ceiling that no step can"
        " exceed, or what goes beyond the write-up."
    )
    title: Sentence = key("The heading of its section.")
    idea: Sentence = key("Why it should be faster, in a sentence or two.", "")
    after: Maybe[Name] = key(
        "The variant it is compared with, and whose source its difference is shown to.", None
    )
    ceilings: Maybe[Unique[Name]] = key(
        "The ceilings of the study that bound it; left out, all of them. Pages give its rate as a"
        " share of the fastest of these. A variant with an empty list is no contender for the"
        " fastest of the study.",
        None,
    )
    beats: Mapping[Name, Sentence] = key(
        "Ceilings of the study that it is faster than, with the reason. The publication check"
        " reports any other ceiling that is beaten.",
        factory=dict,
    )
    source: Maybe[Name] = key(
        "Stem of its source file (.cu, .cpp or .py); left out, its name. Two entries may share one"
        " file.",
        None,
    )
    case_sets: Annotated[Unique[Text], Field(min_length=1)] = key(
        "The case sets it is measured in.", alias="cases"
    )
    full: Annotated[Unique[Text], Field(min_length=1)] = key(
        "Case sets that only the full grid measures, for charts that go further than claims need."
        " Cases that are among `cases`, too, are measured in every grid.",
        (),
    )
    workload: Name = key(
        "Stem of the Python file whose Workload prepares its inputs and binds it.", "workload"
    )
    needs: Unique[Need] = key(
        "What a machine must have to run it: gpu, sm_90 (or another architecture), cuda>=12.8 (or"
        " another version), torch, rmm (RAPIDS RMM 26.06 or newer, as the package librmm), managed,"
        " libfabric, or `peers: 2` (or more): that number of GPUs that can access each other's"
        " memory. Where one is missing, the variant is skipped and the results say why. A .cu"
        " source needs gpu.",
        (),
    )
    flags: tuple[Text, ...] = key("Added to the compiler's command line.", ())
    constants: Constants = key(
        "Its values of the study's constants, where they differ.", factory=dict
    )
    options: Annotated[Mapping[Name, Name], Field(min_length=1)] = key(
        "Words that select how this variant works. They are compiled in as macros (`memory: pinned`"
        " becomes -DMEMORY=pinned) and passed to the workload as `variant.options`.",
        factory=dict,
    )
    captures: Unique[CaptureKind] = key(
        "What is captured for the headline case; by default everything.", CAPTURE_KINDS
    )
    host_work: Boolean = key(
        "Whether the CPU takes part in the operation, so that it is timed synchronously and not"
        " compared by gpu_time.",
        False,
    )
    clock: Literal["cpp", "python"] = key(
        "What takes its host times: the bindings of its module (kernels/common/host_clock.h), or"
        " Python, whose call is then part of the time. Pages say `timed in Python`.",
        "cpp",
    )
    copies_alone: Boolean = key(
        "Whether its work is nothing but copies by copy engines. In a stream that is held until all"
        " is enqueued, such a copy begins later than on an idle GPU, because the copy engine polls"
        " for the work before it. So its device time is of a copy behind a kernel; pages label it"
        " so, and host time leads.",
        False,
    )
    waits: Boolean = key(
        "Whether its call waits for the GPU, so that its stream cannot be held. Its device time"
        " then contains the host's calls, and pages label it so; `host_work` implies it.",
        False,
    )
    link: Maybe[Mapping[Text, Expression]] = key(
        "How the variant reads host memory, for the link model; without it there is no prediction."
        " Values are whole-number arithmetic of the case's keys and the constants.",
        None,
    )


@dataclass(frozen=True, kw_only=True)
class StudyKeys(Keys):
    title: Sentence = key("The heading that the site gives the study.")
    question: Sentence = key("What the study asks, in a sentence or two.")
    write_up: Maybe[WriteUp] = key("The published text that this study reproduces.", None)
    constants: Constants = key(
        "Whole-number parameters of the study. They are compiled in as macros (token_bytes becomes"
        " TOKEN_BYTES) and can be used in payload_bytes.",
        factory=dict,
    )
    budget_s: Count = key(
        "Seconds that measuring the whole study in the default grid should take at most."
    )
    calibrates: Boolean = key(
        "Whether the link model's parameters are fitted to the results of this study.", False
    )
    fitted_range: Mapping[Text, tuple[Natural, Natural]] = key(
        "Lowest and highest value of a case's key, by key, that the link model is fitted to. Cases"
        " of the calibration beyond these are only predicted, and show how far the model"
        " extrapolates.",
        factory=dict,
    )
    crosses_once: tuple[CaseFilter, ...] = key(
        "Cases in which every byte of the payload crosses the host link once, whatever the variant:"
        " those that have one of the values of each key. No rate there can exceed that of the link;"
        " the publication check says where one does.",
        (),
    )
    limit: Maybe[Limit] = key(
        "A variant of another study that moves as many bytes as these could move at best. The home"
        " page compares the steps with it where the study has no ceilings.",
        None,
    )
    imports: Unique[Text] = key(
        "Modules that the workload imports where they are installed. They are imported once, before"
        " the rounds, instead of in each.",
        (),
    )
    telemetry: Boolean = key(
        "Sample NVML while cells are measured; off for studies that measure nanoseconds.", True
    )
    metrics: Annotated[Mapping[Name, MetricKeys], Field(min_length=1)] = key(
        "The measured quantities, by name. The engine takes gpu_time, host_time and submit_time"
        " where they are listed; the workload takes all others."
    )
    case_sets: Annotated[Mapping[Name, CaseSet], Field(min_length=1)] = key(
        "Sets of cases, by name. Every key below that is not listed here is a key of the cases,"
        " with its values in a list; the set has a case for each combination.",
        alias="cases",
    )
    case_words: Mapping[Text, Text] = key(
        "Words for a case in a sentence, by `key` or `key=value`; `{}` or `{bytes}` is its value.",
        factory=dict,
    )
    headline_case: Case = key(
        "Keys and values of the one case that claims and the home page use, and captures unless"
        " `captured` says otherwise.",
        alias="headline",
    )
    goal: Maybe[Name] = key(
        "The step that all others lead to, where it is not the fastest: the home page compares it"
        " with the first.",
        None,
    )
    captured_cases: Annotated[tuple[CapturedKeys, ...], Field(min_length=1)] = key(
        "Cases of counters and timelines, where they are not the headline: a profiler that repeats"
        " a kernel first saves all memory the kernel can reach. Each variant is captured in the"
        " first of these cases that it has.",
        (),
        alias="captured",
    )
    entries: Annotated[tuple[VariantKeys, ...], Field(min_length=1)] = key(
        "The ways of doing the operation, in the order of the journey.", alias="variants"
    )
    withdrawn: Unique[Name] = key(
        "Ids of claims that were removed after runs had recorded their bounds. The publication"
        " check misses any other.",
        (),
    )
    claim_entries: Annotated[tuple[ClaimKeys, ...], Field(min_length=1)] = key(
        "The claims of the write-up and of this project, each with its test.", (), alias="claims"
    )
