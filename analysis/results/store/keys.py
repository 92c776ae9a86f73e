"""Descriptions in the files of results as models: schema, reference and messages at once.

`RunFile` describes one run of one study, `CaptureFile` one capture of counters or timelines;
docs/contract.md says what each key means.
"""

import json
import operator
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field

from analysis.base.keys import MAX_NUMBER, NAME, UtcTime, only
from analysis.results.store import METHOD_VERSION
from analysis.study.config import MachineName
from analysis.study.keys import GRIDS, CaptureKind

FORMAT: Final = 1
"""Version of the form of run files."""
RUN: Final = re.compile(r"(20[0-9]{6}T[0-9]{6}Z)-([0-9a-f]{8})")
"""A run's name: start time and host."""
UNKNOWN_HOST: Final = "0" * 8
SMALLEST: Final = 1e-13
"""The smallest value above 0, in any unit: a mean over a loop resolves no less of a second."""
LARGEST: Final = 1e15
"""The largest value, in any unit but seconds: a thousand times the memory of any machine."""
LONGEST_S: Final = 1e5
"""The longest time: no round lasts longer than a day."""
MAX_CLOCK_ERROR: Final = timedelta(days=1)
"""Maximum difference between the clocks of two machines."""
PRIVATE: Final = re.compile(
    r"(?<![\w./<>-])~?/(?:[\w.+@~-]+/)*([\w.+@~-]+)|[A-Za-z]:\\(\w+)"
    r"|(?:GPU-)?[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
)
"""A path or a UUID: neither belongs in a file that is published."""
_PAIR: Final = r"[a-z][a-z0-9_]*=[A-Za-z0-9_.-]+"


def without_private(text: str) -> str:
    """`text` with only the last name of each path, and with UUIDs named so."""
    while (public := PRIVATE.sub(lambda found: found[1] or found[2] or "UUID", text)) != text:
        text = public  # a last name may be a UUID
    return text


def name_of_run(start: str, host: str) -> str:
    """The name of a run that starts at this UTC timestamp."""
    return re.sub(r"[-:]|\.\d+", "", start) + f"-{host}"


def start_of(run: str) -> str:
    """The UTC timestamp in a run's name, to the second."""
    return re.sub(r"(....)(..)(..T..)(..)(..Z).*", r"\1-\2-\3:\4:\5", run)


PastTime = Annotated[
    UtcTime,
    only(
        lambda time: datetime.fromisoformat(time) <= datetime.now(UTC) + MAX_CLOCK_ERROR,
        "a time that does not lie in the future",
    ),
]
RunName = Annotated[str, Field(pattern=f"^{RUN.pattern}$")]
Text = Annotated[
    str,
    Field(max_length=4000),
    only(lambda text: not PRIVATE.search(text), "text without a path or UUID"),
]
Name = Annotated[str, Field(max_length=200, pattern=f"^{NAME.pattern}$")]
CaseId = Annotated[
    str,
    Field(max_length=1000),
    only(re.compile(f"({_PAIR}(,{_PAIR})*)?").fullmatch, "key=value pairs joined by commas"),
]
Reasons = Annotated[str, Field(max_length=1000, pattern=r"^([a-z_]+(\|[a-z_]+)*)?$")]
"""Reasons for lowered clocks, joined by a bar."""
Token = Annotated[str, Field(pattern="^[A-Za-z0-9_.-]{1,64}$")]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Natural = Annotated[int, Field(ge=0, le=int(MAX_NUMBER))]
Count = Annotated[int, Field(ge=1, le=int(MAX_NUMBER))]
Few = Annotated[int, Field(ge=0, le=100_000)]
Amount = Annotated[float, Field(ge=0, le=LARGEST)]
Positive = Annotated[float, Field(ge=SMALLEST, le=LARGEST)]
Seconds = Annotated[float, Field(ge=0, le=LONGEST_S)]
Megahertz = Annotated[float, Field(ge=0, le=100_000)]
Bounds = dict[Name, list[Annotated[str, Field(pattern="^[0-9a-f]{12}$")]]]
"""The digests of the comparisons of claims, by the claim's id."""


class Keys(BaseModel, extra="forbid", strict=True, allow_inf_nan=False):
    """Base of an object in one of the files. A key without a default is required."""


class GpuKeys(Keys):
    """A GPU in use, and its link."""

    gpu: Text
    arch: Text | None = None
    sms: Count | None = None
    gpu_memory_bytes: Count | None = None
    power_limit_w: Positive | None = None
    max_sm_mhz: Megahertz | None = None
    max_memory_mhz: Megahertz | None = None
    ecc: bool | None = None
    pcie_generation: Count | None = None
    pcie_width: Count | None = None
    pcie_max_payload_bytes: Count | None = None
    pcie_read_request_bytes: Count | None = None
    gpu_numa_node: Natural | None = None


class Limits(Keys):
    """Limits of the measuring process, in cores and bytes; null if unlimited or unknown."""

    cores: Count | None = None
    cpu_quota: Positive | None = None
    memory_bytes: Natural | None = None
    locked_bytes: Natural | None = None


class HostKeys(Keys):
    """The host of a run, facts about two GPUs by pair, such as `0-1`."""

    id: Annotated[str, Field(pattern="^[0-9a-f]{8}$")]
    gpus: list[GpuKeys] = []
    driver: Text | None = None
    cuda: Text | None = None
    peer_access: dict[Token, bool | None] | None = None
    nvlinks: dict[Token, Natural | None] | None = None
    pcie_path: dict[Token, Text | None] | None = None
    cpu: Text | None = None
    cpu_id: Text | None = None
    cpu_caches: dict[Token, Count] | None = None
    cores: Count | None = None
    numa_nodes: Count | None = None
    memory_bytes: Count | None = None
    kernel: Text | None = None
    hypervisor: bool | None = None
    iommu: bool | None = None
    python: Text | None = None
    libraries: dict[Token, Text] = {}
    limits: Limits = Limits()
    unsupported: list[Name] = []

    def described(self) -> dict[str, Any]:
        """The facts of the host and its first GPU, None for those in `unsupported`; `gpus` is the
        number of several GPUs, `gpu_numa_nodes` has the node of each."""
        facts = self.model_dump(exclude_none=True, exclude={"gpus", "id", "unsupported"})
        first = self.gpus[0].model_dump(exclude_none=True) if self.gpus else {"gpu": None}
        if len(self.gpus) > 1:
            first.pop("gpu_numa_node", None)
            nodes = [gpu.gpu_numa_node for gpu in self.gpus]
            first |= {"gpus": len(self.gpus), "gpu_numa_nodes": nodes}
        return {**dict.fromkeys(self.unsupported), **first, "host": self.id, **facts}


class Compiler(Keys):
    """Versions and architecture."""

    nvcc: Text | None = None
    cxx: Text | None = None
    arch: Text | None = None


class VariantKeys(Keys):
    """A variant of a run; `unmet` is the missing resource for which all cases were skipped."""

    source_sha256: Digest
    flags: list[Text] = []
    packages: Annotated[dict[Text, Text], Field(exclude_if=operator.not_)] = {}
    unmet: Text | None = None


class Disturbance(Keys):
    """A disturbed round."""

    round: Few
    why: list[Text]


Former = Annotated[Positive | None, Field(exclude_if=lambda value: value is None)]
"""A number that only older runs have."""


class Look(Keys):
    """The host before or after a round."""

    copy_bytes_per_s: Positive
    spin_s: Former = None
    cpu_mhz: Former = None
    core_hz: Former = None
    busy_share: Amount | None = None
    steal_s: Amount | None = None
    throttled_periods: Natural | None = None


class Stages(Keys):
    """Seconds that rounds spent before the first cell; on inputs and warm-up; on launching and
    checking; on timing; and, as part of the timing, in recorded times and measurements."""

    start: Seconds
    prepare: Seconds
    check: Seconds
    timing: Seconds
    recorded: Seconds


class Description(Keys):
    """The keys that runs and captures share. Each entry of `variants` has a `source_sha256`."""

    format: Annotated[int, Field(ge=FORMAT, le=FORMAT)]
    machine: MachineName
    study: Name
    commit: Token | None
    dirty: bool | None
    files: dict[str, Digest]
    host: HostKeys
    compiler: Compiler
    variants: Mapping[Name, Any]

    def fresh(self, codes: Mapping[str, str]) -> set[str]:
        """The variants whose results are of today's `codes`, by variant, and method."""
        entries = self.variants.items()
        return {name for name, entry in entries if entry.source_sha256 == codes.get(name)}


class RunFile(Description):
    """`<run>.json`: one run of one study. A run that skipped everything has no rounds."""

    method_version: Few
    run: RunName
    grid: Annotated[str, Field(pattern=f"^({'|'.join(GRIDS)})$")]
    rounds: Few
    asked: list[Name]
    start: PastTime
    end: PastTime
    command: Text
    telemetry: dict[Name, Text]
    variants: dict[Name, VariantKeys]
    bounds: Bounds
    conditions: list[Look]
    disturbed: list[Disturbance]
    repeated: list[Disturbance]
    stages_s: Stages | None
    energy_j: Amount | None
    discarded_host_passes: Few
    other_processes: list[Natural]

    @property
    def file_name(self) -> str:
        return f"{self.run}.json"

    @property
    def begun(self) -> str:
        """The UTC timestamp of its name, to the second."""
        return start_of(self.run)

    def fresh(self, codes: Mapping[str, str]) -> set[str]:
        return super().fresh(codes) if self.method_version == METHOD_VERSION else set()


class CapturedVariant(Keys):
    """Outcome of a capture of one variant: `captured`, or `not captured: ` and the reason."""

    case: CaseId
    source_sha256: Digest
    status: Text
    bounds: Bounds = {}


class CaptureFile(Description):
    """`<time>-<host>.<kind>.json`: a capture of the variants of one study."""

    kind: CaptureKind
    at: PastTime
    variants: dict[Name, CapturedVariant]

    @property
    def file_name(self) -> str:
        return f"{name_of_run(self.at, self.host.id)}.{self.kind}.json"


def text_of(content: RunFile | CaptureFile) -> str:
    """The text of its file: a line per key, in their order."""
    known = content.model_dump() | {"host": content.host.model_dump(exclude_none=True)}
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in known.items())
    return f"{{\n{lines}\n}}\n"
