"""The files of results as models: schema, check and reference at once.

`RunFile` is one run of one study, `CaptureFile` one capture of its counters or timelines. Whatever
reads these files later relies on them, so an unknown key is refused.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, TypeVar

from pydantic import AfterValidator, BaseModel, Field, ValidationInfo, field_validator

from analysis.base.keys import NAME, Fault, UtcTime
from analysis.base.records import MAX_NUMBER
from analysis.results.store import METHOD_VERSION
from analysis.study.config import MachineName
from analysis.study.keys import GRIDS, CaptureKind

T = TypeVar("T")

FORMAT: Final = 1
"""Version of the form of run files."""
RUN: Final = re.compile(r"(\d{8}T\d{6}Z)-([0-9a-f]{8})", re.ASCII)
"""A run's name: start time and host."""
UNKNOWN_HOST: Final = "0" * 8
MAX_CLOCK_ERROR: Final = timedelta(days=1)
"""The clocks of two machines may differ; a run that is dated later than this lies in the future."""
PRIVATE: Final = re.compile(
    r"(?<![\w./<>-])~?/(?:[\w.+@~-]+/)*[\w.+@~-]+|[A-Za-z]:\\\w+"
    r"|(?:GPU-)?[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
)
"""A path or a UUID: neither belongs in a file that is published."""


def without_private(text: str) -> str:
    """`text` with only the last name of each path, and with UUIDs named so."""
    while (public := PRIVATE.sub(_last_name, text)) != text:  # a last name may be a UUID
        text = public
    return text


def _last_name(found: re.Match[str]) -> str:
    *folders, last = re.split(r"[/\\]", found[0])
    return last if folders else "UUID"


def name_of_run(start: str, host: str) -> str:
    """The name of a run that starts at this UTC timestamp."""
    return re.sub(r"[-:]|\.\d+", "", start) + f"-{host}"


def start_of(run: str) -> str:
    """The UTC timestamp in a run's name, to the second."""
    return f"{datetime.strptime(run.split('-')[0], '%Y%m%dT%H%M%SZ').isoformat()}Z"


def _moment(time: str) -> datetime:
    return datetime.fromisoformat(time)


def _past(time: str) -> str:
    if _moment(time) > datetime.now(UTC) + MAX_CLOCK_ERROR:
        raise Fault("a time that does not lie in the future", time)
    return time


def _run(name: str) -> str:
    try:
        _past(start_of(name))
    except ValueError as error:
        expected = error.expected if isinstance(error, Fault) else "a time that exists"
        raise Fault(expected, name) from None
    return name


def _public(text: str) -> str:
    if PRIVATE.search(text):
        raise Fault("text without a path or UUID", text)
    return text


PastTime = Annotated[UtcTime, AfterValidator(_past)]
RunName = Annotated[str, Field(pattern=f"^{RUN.pattern}$"), AfterValidator(_run)]
HostId = Annotated[str, Field(pattern="^[0-9a-f]{8}$")]
Word = Annotated[str, Field(max_length=1000), AfterValidator(_public)]
Text = Annotated[str, Field(max_length=4000), AfterValidator(_public)]
Name = Annotated[str, Field(max_length=200, pattern=f"^{NAME.pattern}$")]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Commit = Annotated[str, Field(pattern="^[A-Za-z0-9._-]{1,64}$")]
Natural = Annotated[int, Field(ge=0, le=int(MAX_NUMBER))]
Count = Annotated[int, Field(ge=1, le=int(MAX_NUMBER))]
Few = Annotated[int, Field(ge=0, le=100_000)]
Amount = Annotated[float, Field(ge=0, le=MAX_NUMBER)]
Positive = Annotated[float, Field(gt=0, le=MAX_NUMBER)]
Listed = Annotated[list[T], Field(max_length=1001)]
ByPair = Annotated[
    dict[Annotated[str, Field(pattern="^[0-9]{1,4}-[0-9]{1,4}$")], T], Field(max_length=1000)
]
"""By two GPUs, such as `0-1`."""
Package = Annotated[str, Field(pattern="^[A-Za-z0-9_.-]{1,60}$")]
Bounds = Annotated[
    dict[
        Annotated[str, Field(max_length=100, pattern=f"^{NAME.pattern}$")],
        Listed[Annotated[str, Field(pattern="^[0-9a-f]{12}$")]],
    ],
    Field(max_length=1000),
]
"""The digests of the comparisons of claims, by the claim's id."""
ByVariant = Annotated[dict[Name, T], Field(max_length=1000)]


class Keys(BaseModel, extra="forbid", strict=True, allow_inf_nan=False):
    """Base of an object in one of the files. A key without a default is required."""


class GpuKeys(Keys):
    """A GPU in use, and its link."""

    gpu: Word
    arch: Word | None = None
    sms: Annotated[int, Field(ge=1, le=10_000)] | None = None
    gpu_memory_bytes: Count | None = None
    power_limit_w: Positive | None = None
    max_sm_mhz: Positive | None = None
    max_memory_mhz: Positive | None = None
    ecc: bool | None = None
    pcie_generation: Count | None = None
    pcie_width: Count | None = None
    pcie_max_payload_bytes: Count | None = None
    pcie_read_request_bytes: Count | None = None
    gpu_numa_node: Natural | None = None


class Limits(Keys):
    """Limits of the measuring process: cores, the CPU quota in cores, and bytes of memory and of
    pinned memory; null if unlimited or unknown."""

    cores: Count | None = None
    cpu_quota: Positive | None = None
    memory_bytes: Natural | None = None
    locked_bytes: Natural | None = None


class HostKeys(Keys):
    """The host of a run. `unsupported` lists the keys that it cannot answer."""

    id: HostId
    gpus: Annotated[list[GpuKeys], Field(max_length=64)] = []
    driver: Word | None = None
    cuda: Word | None = None
    peer_access: ByPair[bool | None] | None = None
    nvlinks: ByPair[Natural | None] | None = None
    pcie_path: ByPair[Word | None] | None = None
    cpu: Word | None = None
    cpu_id: Word | None = None
    cpu_caches: Annotated[dict[Package, Count], Field(max_length=100)] | None = None
    cores: Count | None = None
    numa_nodes: Count | None = None
    memory_bytes: Count | None = None
    kernel: Word | None = None
    hypervisor: bool | None = None
    iommu: bool | None = None
    python: Word | None = None
    libraries: Annotated[dict[Package, Word], Field(max_length=100)] = {}
    limits: Limits = Limits()
    unsupported: Listed[Name] = []

    def described(self) -> dict[str, Any]:
        """The facts of the host and its first GPU, None for those in `unsupported`; `gpus` is the
        number of several GPUs, `gpu_numa_nodes` has the node of each."""
        facts = self.model_dump(exclude_none=True, exclude={"gpus", "id", "unsupported", "limits"})
        limits = self.limits.model_dump(exclude_none=True)
        first = self.gpus[0].model_dump(exclude_none=True) if self.gpus else {"gpu": None}
        node = first.pop("gpu_numa_node", None)
        several: dict[str, Any] = {}
        if len(self.gpus) > 1:
            nodes = [one.gpu_numa_node for one in self.gpus]
            several = {"gpus": len(self.gpus), "gpu_numa_nodes": nodes}
        elif node is not None:
            several = {"gpu_numa_node": node}
        unknown = dict.fromkeys(self.unsupported)
        return {**unknown, **first, **several, "host": self.id, **facts, "limits": limits}


class Compiler(Keys):
    """Versions and architecture."""

    nvcc: Word | None = None
    cxx: Word | None = None
    arch: Word | None = None


class VariantKeys(Keys):
    """A variant of a run: the hash of its code, compiler flags, and the missing resource for which
    all of its cases were skipped, or null."""

    source_sha256: Digest
    flags: Listed[Text] = []
    unmet: Text | None = None


class Disturbance(Keys):
    """A disturbed round."""

    round: Few
    why: Listed[Text]


class Look(Keys):
    """The host before or after a round."""

    spin_s: Positive
    copy_bytes_per_s: Positive
    cpu_mhz: Amount | None = None
    core_hz: Positive | None = None
    busy_share: Amount | None = None
    steal_s: Amount | None = None
    throttled_periods: Natural | None = None


class Stages(Keys):
    """Seconds that rounds spent before the first cell; binding inputs, with the warm-up; launching
    and checking; timing; and, as part of the timing, in times that are kept and in measurements
    that the workload makes itself."""

    start: Amount
    prepare: Amount
    check: Amount
    timing: Amount
    recorded: Amount


class RunFile(Keys):
    """`<run>.json`: one run of one study. A run that skipped everything has no rounds."""

    format: Annotated[int, Field(ge=FORMAT, le=FORMAT)]
    method_version: Few
    machine: MachineName
    study: Name
    run: RunName
    grid: Annotated[str, Field(pattern=f"^({'|'.join(GRIDS)})$")]
    rounds: Few
    asked: Listed[Name]
    start: PastTime
    end: PastTime
    commit: Commit | None
    dirty: bool | None
    command: Text
    files: Annotated[dict[Annotated[str, Field(max_length=100)], Digest], Field(max_length=2)]
    host: HostKeys
    telemetry: ByVariant[Text]
    compiler: Compiler
    variants: ByVariant[VariantKeys]
    bounds: Bounds
    conditions: Listed[Look]
    disturbed: Listed[Disturbance]
    repeated: Listed[Disturbance]
    stages_s: Stages | None
    energy_j: Amount | None
    discarded_host_passes: Few
    other_processes: Listed[Natural]

    @field_validator("end")
    @classmethod
    def _is_after_start(cls, end: str, info: ValidationInfo) -> str:
        start = info.data.get("start", end)
        if _moment(end) < _moment(start):
            raise Fault(f"a time from {start} on, its start", end)
        return end

    @field_validator("host")
    @classmethod
    def _is_in_name(cls, host: HostKeys, info: ValidationInfo) -> HostKeys:
        run = info.data.get("run", f"-{host.id}")
        if host.id != run.split("-")[1]:
            raise Fault(f"the host of the run's name, {run}", host.id)
        return host

    @property
    def file_name(self) -> str:
        return f"{self.run}.json"

    @property
    def begun(self) -> str:
        """The UTC timestamp of its name, to the second."""
        return start_of(self.run)

    def is_fresh(self, variant: str, source_sha256: str | None) -> bool:
        """Whether its samples of `variant` are of this code and today's method."""
        known = self.variants.get(variant)
        is_of_code = known is not None and known.source_sha256 == source_sha256
        return is_of_code and self.method_version == METHOD_VERSION


class CapturedVariant(Keys):
    """Outcome of a capture of one variant: `captured`, or `not captured: ` and the reason."""

    case: Annotated[str, Field(max_length=1000, pattern="^[A-Za-z0-9_=,.-]*$")]
    source_sha256: Digest
    status: Text
    bounds: Bounds = {}


class CaptureFile(Keys):
    """`<time>-<host>.<kind>.json`: a capture of the variants of one study."""

    format: Annotated[int, Field(ge=FORMAT, le=FORMAT)]
    kind: CaptureKind
    machine: MachineName
    study: Name
    at: PastTime
    commit: Commit | None
    dirty: bool | None
    files: Annotated[dict[Annotated[str, Field(max_length=100)], Digest], Field(max_length=1)]
    host: HostKeys
    compiler: Compiler
    variants: ByVariant[CapturedVariant]

    @property
    def stem(self) -> str:
        """The name of its files without `.json` or `.csv`."""
        return f"{name_of_run(self.at, self.host.id)}.{self.kind}"

    @property
    def file_name(self) -> str:
        return f"{self.stem}.json"


def text_of(content: RunFile | CaptureFile) -> str:
    """The text of its file: a line per key, in their order."""
    known = content.model_dump(exclude_none=False)
    known["host"] = content.host.model_dump(exclude_none=True)
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in known.items())
    return f"{{\n{lines}\n}}\n"
