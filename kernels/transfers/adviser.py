"""The adviser: every way's cost on one machine, and the ways of a job in their order.

An adviser is made from committed results or from a calibration, and is written as JSON.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from analysis.api.files import (
    Boolean,
    Count,
    Keys,
    Sentence,
    Text,
    adapter,
    key,
    read_json,
    read_keys,
    write_whole,
)
from analysis.api.study import FieldError, HotpathError, require_known

from .cost import Cost, Timing, borrow, fit_cost
from .kinds import memory_of, method_of

Layout: TypeAlias = Literal["packed", "pitched", "scattered"]
Pieces: TypeAlias = Literal["any", "rows", "packed_on_device"]
Direction: TypeAlias = Literal["h2d", "d2h"]

LAYOUTS: Final = ("packed", "pitched", "scattered")
DIRECTIONS: Final = ("h2d", "d2h")
METRIC: Final = "host_time"
"""The clock that ranks the ways: until all pieces have arrived, the CPU's part included."""
LINE_BYTES: Final = 128
"""Kernels move pieces that start and end on this many bytes in whole cache lines."""
VECTOR_BYTES: Final = 16
"""Kernels move pieces that start and end on this many bytes in whole vectors."""
BATCH_CLIFF_BYTES: Final = 24_576
"""Up to this size, pieces of one cudaMemcpyBatchAsync may cost more than larger ones."""
VERSION: Final = 1
ROW_METHODS: Final = ("2d", "gather", "bulk")
"""Ways that move rows of matrices: pieces at equal distances on either side."""
SIGMAS: Final = 1.96
"""Half of an interval that 95 % of the times are in, in standard errors."""
SURE: Final = 0.95
OTHER_PLACE_ERROR: Final = 0.05
"""Relative error of a time that was measured with another layout or state of the stream."""
MIN_CELLS: Final = 4
"""Fewest cells from which a clock that ranks nothing is predicted."""
THRESHOLD_SIZES: Final = tuple(2**k for k in range(9, 21))
THRESHOLD_COUNTS: Final = tuple(round(2 ** (k / 2)) for k in range(35))


def alignment_of(size: int) -> int:
    """The largest of 128, 16 and 1 B that divides the size; 128 for pieces that fill an equal part
    of a cache line, because none lies in two."""
    if size >= VECTOR_BYTES and LINE_BYTES % size == 0:
        return LINE_BYTES
    return next(unit for unit in (LINE_BYTES, VECTOR_BYTES, 1) if size % unit == 0)


@dataclass(frozen=True)
class Job:
    """`count` pieces of `size` bytes to move.

    host, device: layout of the pieces on that side
    is_busy: whether the stream has unfinished work when the call is made
    alignment: bytes, a power of two, on which all pieces start and end; 0 for that of their size
    """

    size: int
    count: int = 1
    direction: str = "h2d"
    host: str = "scattered"
    device: str = "scattered"
    is_busy: bool = False
    alignment: int = 0

    def __post_init__(self) -> None:
        for field, got in (("size", self.size), ("count", self.count)):
            if got < 1:
                raise FieldError(field, "a whole number of at least 1", got)
        require_known("direction", self.direction, DIRECTIONS)
        for field, layout in (("host", self.host), ("device", self.device)):
            require_known(field, layout, LAYOUTS)
        if self.alignment < 0 or self.alignment & (self.alignment - 1):
            raise FieldError("alignment", "a power of two", self.alignment)
        if self.alignment == 0:
            object.__setattr__(self, "alignment", alignment_of(self.size))

    @property
    def payload_bytes(self) -> int:
        return self.size * self.count

    @property
    def place(self) -> tuple[str, str, str, bool]:
        """Direction, layouts and state of the stream."""
        return self.direction, self.host, self.device, self.is_busy

    def as_one_piece(self) -> Job:
        """The same job as one piece if its pieces are packed on both sides."""
        if self.count == 1 or self.host == self.device == "packed":
            return replace(self, size=self.payload_bytes, count=1, host="packed", device="packed")
        return self

    def __str__(self) -> str:
        state = "busy" if self.is_busy else "idle"
        layout = f"{self.host} on the host, {self.device} on the device"
        return f"{self.count} x {self.size} B, {self.direction}, {layout}, {state} stream"


@dataclass(frozen=True)
class Way(Keys):
    """One way of moving pieces in one situation, with its costs."""

    variant: Text = key("The variant in study.yaml.")
    title: Sentence = key("The variant's title.")
    memory: Text = key("The kind of host memory.")
    moves: Pieces = key(
        "Pieces that it can move: `any`, `rows` at equal distances on either side, or those that"
        " are `packed_on_device`."
    )
    direction: Direction = key("From host to device (h2d) or back (d2h).")
    host: Layout = key("Layout of the pieces in host memory.")
    device: Layout = key("Layout of the pieces in device memory.")
    is_busy: Boolean = key("Whether the stream had unfinished work.")
    alignment: Count = key("Bytes on which the pieces started and ended; 1 if it is of no effect.")
    costs: Mapping[Text, Cost] = key(
        "The cost by each clock: host_time until the data has arrived, submit_time until the call"
        " returns, cpu_time of all CPU threads until then, gpu_time on the device."
    )

    def can_do(self, job: Job) -> bool:
        """Whether the way can move these pieces, and its time for their alignment is known.

        Copies by loads and stores of vectors hardly depend on cache lines, but bulk copies do.
        """
        is_vectored = job.alignment >= VECTOR_BYTES and "bulk" not in self.variant
        return (
            self.direction == job.direction
            and (self.alignment <= job.alignment or is_vectored)
            and can_move(self.moves, job.host, job.device)
        )

    def distance(self, job: Job) -> tuple[bool, bool, int, int]:
        """Sorts the situations of a variant by their likeness to the job's."""
        layouts = (self.host != job.host) + (self.device != job.device)
        is_better_aligned = self.alignment > job.alignment
        return self.is_busy != job.is_busy, is_better_aligned, layouts, -self.alignment


def can_move(moves: Pieces, host: str, device: str) -> bool:
    """Whether a way for such pieces can move those with these layouts."""
    match moves:
        case "rows":
            return "scattered" not in (host, device)
        case "packed_on_device":
            return device == "packed"
    return True


def pieces_of(variant: str) -> Pieces:
    """The pieces that a way can move."""
    method = method_of(variant)
    if method in ROW_METHODS:
        return "rows"
    return "packed_on_device" if "packed" in method else "any"


@dataclass(frozen=True)
class Rule(Keys):
    """The way for a number of pieces."""

    count_from: Count = key("Smallest number of pieces.")
    variant: Text = key("The way.")


@dataclass(frozen=True)
class Threshold(Keys):
    """The fastest ways for pieces of one size, by their number."""

    direction: Direction = key("From host to device (h2d) or back (d2h).")
    host: Layout = key("Layout of the pieces in host memory.")
    device: Layout = key("Layout of the pieces in device memory.")
    is_busy: Boolean = key("Whether the stream has unfinished work.")
    size_from: Count = key("Smallest size of a piece in bytes, up to that of the next entry.")
    rules: tuple[Rule, ...] = key("Ascending by `count_from`; the last one that fits holds.")


@dataclass(frozen=True)
class Advice:
    """A way for a job: seconds until all has arrived, with an interval; then the other clocks.

    `error` is the relative standard error. `is_measured`: this very cell was measured. A clock is
    NaN if it was not measured.
    """

    variant: str
    seconds: float
    low: float
    high: float
    error: float
    is_measured: bool
    submit_s: float = math.nan
    cpu_s: float = math.nan
    gpu_s: float = math.nan


@dataclass(frozen=True)
class Adviser(Keys):
    """All ways of a machine. The file that `--export` writes; times in seconds, sizes in bytes."""

    format: Literal["hotpath-transfers-adviser"] = key("Names this format.")
    version: Annotated[Count, Field(le=VERSION)] = key("Grows when a reader has to change.")
    machine: Text = key("The machine.")
    source: Literal["results", "calibration"] = key(
        "Where the times come from: committed results, or a calibration of some seconds."
    )
    ways: tuple[Way, ...] = key("Every way and situation.")
    thresholds: tuple[Threshold, ...] = key("The fastest ways of pinned memory, as rules.")

    def advise(self, job: Job, memory: str = "pinned") -> list[Advice]:
        """All ways that can do the job from this kind of memory or from `any`, fastest first."""
        job = job.as_one_piece()
        advices = (_advice(way, job) for way in self._nearest(job, memory))
        return sorted(advices, key=lambda one: one.seconds)

    def beyond(self, job: Job, memory: str = "pinned") -> list[str]:
        """Ways that can do the job but were measured with too few or too many pieces to say how
        long it takes, in their order."""
        job = job.as_one_piece()
        able = (way.variant for way in self.ways if _is_able(way, job, memory))
        known = {way.variant for way in self._nearest(job, memory)}
        return [name for name in dict.fromkeys(able) if name not in known]

    def _nearest(self, job: Job, memory: str) -> Iterable[Way]:
        """Of each variant that can do the job in a time that is known its situation that is most
        like the job's."""
        known = defaultdict(list)
        for way in self.ways:
            if _is_able(way, job, memory) and way.costs[METRIC].covers(job.size, job.count):
                known[way.variant].append(way)
        return (min(ways, key=lambda way: way.distance(job)) for ways in known.values())

    def fastest(self, job: Job) -> str:
        """The way with the shortest time; empty if none can do the job."""
        times = {way.variant: way.costs[METRIC] for way in self._nearest(job, "pinned")}
        return min(times, key=lambda name: times[name].seconds(job.size, job.count), default="")

    def with_thresholds(self) -> Adviser:
        return replace(self, thresholds=tuple(_thresholds(self)))

    def write(self, path: Path) -> None:
        write_whole(path, adapter(Adviser).dump_json(self).decode() + "\n")


def read_adviser(path: Path) -> Adviser:
    """The adviser in a file; FieldError or HotpathError if it is no such file."""
    return read_keys(Adviser, read_json(path), str(path))


def _is_able(way: Way, job: Job, memory: str) -> bool:
    return memory in ("any", way.memory) and way.can_do(job) and METRIC in way.costs


def certainty(best: Advice, second: Advice) -> float:
    """Probability that `best` is faster than `second`."""
    z = math.log(second.seconds / best.seconds) / math.hypot(best.error, second.error)
    return 1 / (1 + math.exp(-1.702 * z))  # close to the normal distribution's, also in JavaScript


def _advice(way: Way, job: Job) -> Advice:
    cost = way.costs[METRIC]
    is_same_place = job.count == 1 or not any(way.distance(job)[:3])
    is_measured = is_same_place and cost.is_measured(job.size, job.count)
    error = cost.noise if is_measured else math.hypot(cost.noise, cost.error)
    if not is_same_place:
        error = math.hypot(error, OTHER_PLACE_ERROR)
    seconds = cost.seconds(job.size, job.count)
    reach = math.exp(SIGMAS * error)

    def by(metric: str) -> float:
        other = way.costs.get(metric)
        if other is None or not other.covers(job.size, job.count):
            return math.nan
        return other.seconds(job.size, job.count)

    return Advice(
        variant=way.variant,
        seconds=seconds,
        low=seconds / reach,
        high=seconds * reach,
        error=error,
        is_measured=is_measured,
        submit_s=by("submit_time"),
        cpu_s=by("cpu_time"),
        gpu_s=by("gpu_time"),
    )


@dataclass(frozen=True)
class Situation:
    """Everything that a cost belongs to but the size and the count."""

    variant: str
    direction: str
    host: str
    device: str
    is_busy: bool
    alignment: int


def make_adviser(
    machine: str,
    source: Literal["results", "calibration"],
    timings: Mapping[tuple[Situation, str], Sequence[Timing]],
    titles: Mapping[str, str],
) -> Adviser:
    """Fit every situation and metric in `timings`. HotpathError if there is none.

    A single piece has no layout, so its timings count for all layouts of its way. Where a way was
    measured in few cells, it borrows more from its best known situation. No way is predicted
    to be faster than the fastest measured one in that direction, nor than itself with larger
    pieces.
    """
    if not timings:
        raise HotpathError(f"{machine}: no times to advise from")
    byte_s = _byte_seconds(timings)
    costs: dict[Situation, dict[str, Cost]] = defaultdict(dict)
    for (place, metric), here in timings.items():
        others = {
            other: found
            for (other, clock), found in timings.items()
            if clock == metric and other != place and _is_same_way(place, other)
        }
        seen = {(one.size, one.count) for one in here}
        single = [
            one
            for other, found in others.items()
            if (other.is_busy, other.alignment) == (place.is_busy, place.alignment)
            for one in found
            if one.count == 1 and (one.size, one.count) not in seen
        ]
        donor = max(others.values(), key=len, default=[])
        if metric == METRIC or len(here) >= MIN_CELLS:
            enough = donor if len(donor) > len(here) else []
            fitted = _fit([*here, *single], enough, place.variant)
            limit = byte_s[place.direction] if metric == METRIC else 0.0
            costs[place][metric] = replace(fitted, byte_s=limit)
    ways = (
        Way(
            variant=place.variant,
            title=titles[place.variant],
            memory=memory_of(place.variant),
            moves=pieces_of(place.variant),
            direction=place.direction,  # type: ignore[arg-type]
            host=place.host,  # type: ignore[arg-type]
            device=place.device,  # type: ignore[arg-type]
            is_busy=place.is_busy,
            alignment=place.alignment,
            costs=by_metric,
        )
        for place, by_metric in costs.items()
    )
    made = Adviser("hotpath-transfers-adviser", VERSION, machine, source, tuple(ways), ())
    return made.with_thresholds()


def _byte_seconds(
    timings: Mapping[tuple[Situation, str], Sequence[Timing]],
) -> Mapping[str, float]:
    """Seconds that a byte takes at least, by direction."""
    found: dict[str, float] = {}
    for (place, metric), cells in timings.items():
        if metric == METRIC:
            least = min(one.seconds / (one.size * one.count) for one in cells)
            found[place.direction] = min(least, found.get(place.direction, math.inf))
    return found


def _is_same_way(one: Situation, other: Situation) -> bool:
    """Whether the two are one way in one direction."""
    return (one.variant, one.direction) == (other.variant, other.direction)


def _fit(measured: Sequence[Timing], donor: Sequence[Timing], variant: str) -> Cost:
    """The fit with or without the batched call's cliff, whichever predicts better."""
    cliffs = (0, BATCH_CLIFF_BYTES) if "batch" in method_of(variant) else (0,)
    fits = (fit_cost(measured, cliff, borrow(measured, donor, cliff)) for cliff in cliffs)
    return min(fits, key=lambda cost: cost.error)


def _thresholds(adviser: Adviser) -> Iterable[Threshold]:
    places = {(way.direction, way.host, way.device, way.is_busy) for way in adviser.ways}
    for direction, host, device, is_busy in sorted(places):
        if host == device == "packed":
            continue
        for size in THRESHOLD_SIZES:
            rules: list[Rule] = []
            for count in THRESHOLD_COUNTS:
                job = Job(size, count, direction, host, device, is_busy)
                best = adviser.fastest(job.as_one_piece())
                if best and (not rules or best != rules[-1].variant):
                    rules.append(Rule(count, best))
            if rules:
                yield Threshold(direction, host, device, is_busy, size, tuple(rules))
