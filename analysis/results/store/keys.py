"""Keys of machine.json and of `<variant>.json`: type, unit and bounds of each.

Whatever reads these files later relies on them, so an unknown key is refused, too.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, Field, ValidationInfo, field_validator

from analysis.base.keys import NAME, Fault, UtcTime
from analysis.base.records import MAX_NUMBER

T = TypeVar("T")

MAX_CLOCK_ERROR: Final = timedelta(days=1)
"""The clocks of two machines may differ; a run that is dated later than this lies in the future."""


def _moment(time: str) -> datetime:
    return datetime.fromisoformat(time)


def _past(time: str) -> str:
    if _moment(time) > datetime.now(UTC) + MAX_CLOCK_ERROR:
        raise Fault("a time that does not lie in the future", time)
    return time


PastTime = Annotated[UtcTime, AfterValidator(_past)]
Word = Annotated[str, Field(max_length=1000)]
Text = Annotated[str, Field(max_length=4000)]
LongText = Annotated[str, Field(max_length=10_000)]
Name = Annotated[str, Field(max_length=200, pattern=f"^{NAME.pattern}$")]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Digests = Annotated[LongText, Field(pattern="^[0-9a-f]{12}( [0-9a-f]{12})*$")]
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
    dict[Annotated[str, Field(max_length=100, pattern=f"^{NAME.pattern}$")], Digests],
    Field(max_length=1000),
]


class Keys(BaseModel, extra="forbid", strict=True, allow_inf_nan=False):
    """Base of an object in one of the files. A key without a default is required."""


class MachineKeys(Keys):
    """machine.json, and `machine` of every run."""

    gpu: Annotated[str, Field(max_length=200)] | None
    arch: Word | None = None
    sms: Annotated[int, Field(ge=1, le=10_000)] | None = None
    driver: Word | None = None
    cuda: Word | None = None
    gpu_memory_bytes: Count | None = None
    power_limit_w: Positive | None = None
    max_sm_mhz: Positive | None = None
    max_memory_mhz: Positive | None = None
    ecc: bool | None = None
    # The link of the first GPU.
    pcie_generation: Count | None = None
    pcie_width: Count | None = None
    pcie_max_payload_bytes: Count | None = None
    pcie_read_request_bytes: Count | None = None
    # Several GPUs.
    gpus: Annotated[int, Field(ge=1, le=1000)] | None = None
    gpu_numa_nodes: Listed[Natural | None] | None = None
    peer_access: ByPair[bool | None] | None = None
    nvlinks: ByPair[Natural | None] | None = None
    pcie_path: ByPair[Word | None] | None = None
    # The host.
    host: Annotated[str, Field(max_length=200)] | None = None
    cpu: Word | None = None
    cpu_id: Word | None = None
    cpu_caches: Annotated[dict[Package, Count], Field(max_length=100)] | None = None
    cores: Count | None = None
    numa_nodes: Count | None = None
    memory_bytes: Count | None = None
    # The system.
    kernel: Word | None = None
    hypervisor: bool | None = None
    iommu: bool | None = None
    python: Word | None = None
    libraries: Annotated[dict[Package, Word | None], Field(max_length=100)] | None = None


class Compiler(Keys):
    """Versions, architecture and flags."""

    nvcc: Word | None = None
    cxx: Word | None = None
    arch: Word | None = None
    flags: Listed[Text] = []


class Proof(Keys):
    """Why a migrated result still belongs to the code."""

    revision: Annotated[str, Field(pattern="^[0-9a-f]{40}$")]
    compared: Literal["module", "timed functions", "sources", "syntax trees"]
    digest: Digest
    apart_from: LongText = ""
    nvcc: Text = ""
    cxx: Text = ""
    arch: Text = ""


class Migration(Keys):
    """A refactoring that the result was carried over."""

    before: Digest = Field(alias="from")
    to: Digest
    why: Text = ""
    proof: Proof | None = None


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


class Stages(Keys):
    """Seconds that rounds spent before the first cell; binding inputs, with the warm-up; launching
    and checking; timing; and, as part of the timing, in times that are kept and in measurements
    that the workload makes itself."""

    start: Amount
    prepare: Amount
    check: Amount
    timing: Amount
    recorded: Amount


class Capture(Keys):
    """Outcome of a capture."""

    status: Text
    at: UtcTime = ""
    case: Annotated[str, Field(max_length=1000, pattern="^[A-Za-z0-9_=,.-]*$")] = ""
    source_sha256: Digest = ""
    bounds: Bounds = {}


class RunKeys(Keys):
    """One run of a variant."""

    run: PastTime
    commit: Annotated[str, Field(pattern="^[A-Za-z0-9._-]{1,64}$")] | None
    dirty: bool | None = None
    source_sha256: Digest
    migrated: Listed[Migration] = []
    method_version: Few
    compiler: Compiler | None = None
    command: LongText = ""
    grid: Literal["smoke", "default", "full"] = "default"
    rounds: Few
    beside: Listed[Name] = []
    start: PastTime
    end: PastTime
    energy_j: Amount | None = None
    stages_s: Stages | None = None
    shared_with_processes: Listed[Natural] = []
    conditions: Listed[Look] | None = None
    disturbed: Listed[Disturbance] = []
    repeated: Listed[Disturbance] = []
    discarded_host_passes: Few = 0
    bounds: Bounds = {}
    unmet: Text | None = None
    captures: dict[Literal["telemetry", "ncu", "timeline"], Capture] = {}
    machine: MachineKeys

    @field_validator("end")
    @classmethod
    def _is_after_start(cls, end: str, info: ValidationInfo) -> str:
        for earlier in ("run", "start"):
            start: Any = info.data.get(earlier, end)
            if _moment(end) < _moment(start):
                raise Fault(f"a time from {start} on, its {earlier}", end)
        return end


class ProvenanceKeys(RunKeys):
    """`<variant>.json`: the newest run, and the earlier ones that are kept."""

    study: Name
    variant: Name
    samples_sha256: Digest
    runs: Annotated[list[RunKeys], Field(max_length=100)]
