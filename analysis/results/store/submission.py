"""Keys of `submitted/<name>.json`: the figures of a machine that somebody sent.

Nothing in it names a host, a serial number or a UUID: hosts are numbered, and text is checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import median
from typing import Annotated, Any, Final, Literal

from pydantic import Field, field_validator, model_validator

from analysis.base.keys import NAME, Fault
from analysis.base.records import MAX_NUMBER
from analysis.results.store import METHOD_VERSION
from analysis.results.store.keys import (
    Amount,
    Count,
    Digest,
    Keys,
    MachineKeys,
    Name,
    Natural,
    PastTime,
    Positive,
)
from analysis.results.store.samples import CASE
from analysis.study.config import MachineName

FORMAT: Final = 1
"""Version of these keys."""
SUBMISSION_LIMIT_KB: Final = 200
SUBMISSION_LIMIT_BYTES: Final = SUBMISSION_LIMIT_KB * 1000
ROUNDING: Final = 2e-5
"""Relative rounding error between two stored figures."""
REACH_ROUNDING: Final = 0.02
_PLAIN: Final = re.compile(r"[A-Za-z0-9 ()@.,+/_:-]{0,200}")
KERNEL: Final = re.compile(r"[0-9.]{0,20}")
_SERIAL: Final = re.compile(r"GPU-|[0-9a-f]{8}-[0-9a-f]{4}-|[0-9a-f]{12}|[0-9]{10}", re.I)

Unit = Literal["s", "B", "B/s", "1/s", "J", "1"]
CaseText = Annotated[str, Field(max_length=1000, pattern=f"^{CASE.pattern}$")]
GpuName = Annotated[str, Field(max_length=100, pattern="^[A-Za-z0-9 ()./+-]*$")]
Ascii = Annotated[str, Field(max_length=1000, pattern="^[ -~]*$")]
Seconds = Annotated[float, Field(ge=0, le=1)]
Real = Annotated[float, Field(ge=-MAX_NUMBER, le=MAX_NUMBER)]


class SentMachine(MachineKeys):
    """machine.json without the host's identifier, and with the bare version of the kernel."""

    host: None = None

    @field_validator("*")
    @classmethod
    def _names_no_one(cls, value: Any) -> Any:
        for text in _texts(value):
            if not is_anonymous(text):
                raise Fault(f"text like {_PLAIN.pattern} without an identifier", text)
        return value

    @field_validator("kernel")
    @classmethod
    def _is_version(cls, kernel: str | None) -> str | None:
        if kernel is not None and not KERNEL.fullmatch(kernel):
            raise Fault("a version without a suffix, such as 6.8.0", kernel)
        return kernel


def is_anonymous(text: str) -> bool:
    """Whether `text` is plain and has nothing like a UUID, a serial number or a MAC address."""
    return bool(_PLAIN.fullmatch(text)) and not _SERIAL.search(text)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts([*value, *value.values()])
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


class SentCode(Keys):
    """The measured code: its commit, and a digest of the hashes of all variants."""

    commit: Annotated[str, Field(pattern="^[A-Za-z0-9._-]{1,64}$")] | None
    dirty: bool | None
    sha256: Digest


class SentRun(Keys):
    """A run and its host, counted from 1."""

    run: PastTime
    host: Annotated[int, Field(ge=1, le=100)]


class _Interval(Keys):
    """A figure with the interval of another run; null without one."""

    low: Real | None
    high: Real | None

    def require_between(self, value: float) -> None:
        """Fault unless the interval has both ends or none, and contains `value`."""
        if (self.low is None) != (self.high is None):
            raise Fault("both ends of an interval or none", [self.low, self.high])
        if self.low is None or self.high is None:
            return
        slack = ROUNDING * abs(value)
        if not self.low - slack <= value <= self.high + slack:
            raise Fault(f"an interval around {value:g}", [self.low, self.high])


class SentFigure(_Interval):
    """A metric: the median over runs, and the median of each run, oldest first."""

    unit: Unit
    median: Amount
    by_run: Annotated[list[Amount], Field(min_length=1, max_length=100)]
    hosts: Annotated[int, Field(ge=1, le=100)]

    @model_validator(mode="after")
    def _agrees(self) -> SentFigure:
        middle = median(self.by_run)
        if abs(self.median - middle) > ROUNDING * abs(middle):
            raise Fault(f"median {middle:g}, that of by_run", self.median)
        if self.hosts > len(self.by_run):
            raise Fault(f"at most {len(self.by_run)} hosts, one a run", self.hosts)
        self.require_between(self.median)
        return self


class SentVariant(Keys):
    """A variant in the case that its page shows."""

    source_sha256: Digest
    case: CaseText
    payload_bytes: Natural
    figures: Annotated[dict[Name, SentFigure], Field(min_length=1, max_length=100)]


class SentParameter(_Interval):
    """A parameter of the link model."""

    unit: Unit
    value: Amount
    runs: Count

    @model_validator(mode="after")
    def _agrees(self) -> SentParameter:
        self.require_between(self.value)
        return self


class ReachKeys(Keys):
    """The output of `tools/reach.cu` with `--json`; null is what it could not find out.

    `pools` are pool_bytes, bytes_per_s, predicted_bytes_per_s and reads_per_s of each pool.
    """

    gpu: GpuName
    sm: Annotated[int, Field(ge=10, le=999)]
    host_page_tables: Literal[0, 1]
    pool_bytes: Count
    held: Positive | None
    covers_bytes: Count | None
    reach_bytes: Positive | None
    walks_per_s: Positive | None
    walk_s: Seconds | None
    doubling_s: Seconds | None
    fit_error: Amount | None
    row_bytes: Count
    advice: Ascii
    pools: Annotated[
        list[Annotated[list[Positive], Field(min_length=4, max_length=4)]],
        Field(min_length=1, max_length=100),
    ]

    @model_validator(mode="after")
    def _agrees(self) -> ReachKeys:
        if None not in (self.held, self.covers_bytes, self.reach_bytes):
            product = (self.held or 0) * (self.covers_bytes or 0)
            if abs((self.reach_bytes or 0) - product) > REACH_ROUNDING * product:
                raise Fault(f"reach_bytes {product:g}, held times covers_bytes", self.reach_bytes)
        return self


class SubmissionKeys(Keys):
    """`submitted/<name>.json`."""

    format: Annotated[int, Field(ge=1, le=FORMAT)]
    name: MachineName
    measured: PastTime
    sha256: Digest
    method_version: Annotated[int, Field(ge=1, le=METHOD_VERSION)]
    code: SentCode
    machine: SentMachine
    runs: Annotated[list[SentRun], Field(max_length=1000)]
    studies: Annotated[
        dict[Name, Annotated[dict[Name, SentVariant], Field(min_length=1, max_length=1000)]],
        Field(max_length=100),
    ]
    parameters: Annotated[
        dict[Annotated[str, Field(max_length=60, pattern=f"^{NAME.pattern}$")], SentParameter],
        Field(max_length=100),
    ]
    reach: ReachKeys | None = None
