"""Questions that measured times answer, as a study's answers.py declares them.

Every question becomes a part of the form, a table, a subcommand of `python -m analysis.advise` and
files for an engine. A question has axes, numbers between measured cells, and choices.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, Final

import pandas as pd

from analysis.base.errors import FieldError
from analysis.base.quantities import binary, extent, ratio, whole
from analysis.results.answers.rule import Answer, Grid, Point, answer, nearest
from analysis.results.tables.rows import RUN_SEPARATOR
from analysis.study import CaseValue, Study, case_id, parse_case
from analysis.toolchain.modules import load_python

ARRIVED: Final = "host_time"
"""The clock that ranks the ways: until all bytes have arrived, the CPU's part included."""
RETURNED: Final = "submit_time"
"""Time until the call returns."""
HELD_OUT: Final = "held_out"
"""Prefix of case sets that test the answers, which do not use them."""
MAP: Final = "map_"
"""Prefix of case sets that were added for the answers."""
MAP_SHARE: Final = 0.9
"""A way belongs to the map if it was measured in at least this share of its cells."""
FIGURES: Final = ("time", "rate", "of the link", "call returns after", "over the fastest")
"""Titles of the figures of a way."""
DISAGREE: Final = 1.25
"""An answer says so where the runs of its way differ by more than this factor."""
_UNITS: Final = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_MAX: Final = 2**50


@dataclass(frozen=True)
class Axis:
    """A number of the question; `start` is the form's first one, in bytes if `is_bytes`."""

    name: str
    label: str
    start: int
    is_bytes: bool = False

    def text(self, value: int) -> str:
        return binary(value) if self.is_bytes else whole(value)

    def parse(self, text: str) -> int:
        """A number such as 4096, or bytes such as `24 KiB`. FieldError otherwise."""
        found = re.fullmatch(r"([0-9]{1,15}) ?([KMGT]iB|B|)", text)
        scale = _UNITS[found[2]] if found and (self.is_bytes or not found[2]) else 0
        value = int(found[1]) * scale if found else 0
        if not 1 <= value <= _MAX:
            expected = "bytes such as 4096, 24KiB or 40GiB"
            expected = expected if self.is_bytes else "a whole number of at least 1"
            raise FieldError(f"--{self.name}", expected, text)
        return value


@dataclass(frozen=True)
class Choice:
    """A choice between `options`, values with their words; the form starts with the first.

    faster: the option to compare other ones with
    """

    name: str
    label: str
    options: Mapping[str, str]
    faster: str = ""


@dataclass(frozen=True)
class Way:
    """A variant in words, and the cores and SMs that it takes. No shipped one is an answer."""

    words: str
    takes: str = ""
    is_shipped: bool = False


@dataclass(frozen=True)
class Rule:
    """A rule of thumb: in situations `where` each choice has one of these options, and within the
    `bounds` of the axes, both ends included, take this way. It is compared with the ways `among`
    which one chooses, by default all."""

    says: str
    way: str
    where: Mapping[str, Collection[str]] = field(default_factory=dict)
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    among: Collection[str] = ()

    def applies(self, where: Mapping[str, str], values: Mapping[str, int]) -> bool:
        """Whether it is about this situation and the `values` of the axes."""
        is_here = all(where[name] in options for name, options in self.where.items())
        return is_here and all(lo <= values[name] <= hi for name, (lo, hi) in self.bounds.items())


@dataclass(frozen=True, eq=False)
class Question:
    """What can be asked of a study.

    label: what moves, in words
    cell: a point in words, a format string of the axes' names
    ways: by variant, the simplest first
    places: the axes' and choices' values of a variant's case, one for each situation that it
      belongs to; none if the case answers another question
    link: study and variant whose highest rate no answer exceeds
    base: the way that every point of a machine without the map must have been measured with, if any
    multiple: the number on the first axis must be a multiple of this
    constants: rules that others follow, by their name; the first that fits counts
    """

    name: str
    label: str
    cell: str
    axes: Sequence[Axis]
    ways: Mapping[str, Way]
    places: Callable[[str, Mapping[str, CaseValue]], Iterable[Mapping[str, Any]]]
    link: tuple[str, str]
    choices: Sequence[Choice] = ()
    base: str = ""
    multiple: int = 1
    rules: Sequence[Rule] = ()
    constants: Mapping[str, Sequence[Rule]] = field(default_factory=dict)

    @property
    def offered(self) -> list[str]:
        return [name for name, way in self.ways.items() if not way.is_shipped]

    @property
    def shipped(self) -> list[str]:
        return [name for name, way in self.ways.items() if way.is_shipped]

    def values(self, point: Point) -> dict[str, int]:
        """The numbers of a point by their axes."""
        return dict(zip((axis.name for axis in self.axes), point, strict=True))

    def point_text(self, point: Point) -> str:
        values = self.values(point)
        return self.cell.format(**{axis.name: axis.text(values[axis.name]) for axis in self.axes})


@dataclass(frozen=True, eq=False)
class Situation:
    """The measured times of a machine with the same choices.

    times: seconds of each way by point until all bytes have arrived, never less than the link needs
    returns: the same until the call returns
    spread: the longest of the runs' times over the shortest, by point and way
    payload: bytes by point
    held_out: times of the points that test the answers
    of_map: points that were measured for the answers
    link: rate of the link in B/s, infinite if unknown
    """

    question: Question
    machine: str
    where: Mapping[str, str]
    link: float
    times: dict[Point, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    returns: dict[Point, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    spread: dict[tuple[Point, str], float] = field(default_factory=dict)
    payload: dict[Point, int] = field(default_factory=dict)
    held_out: dict[Point, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    of_map: set[Point] = field(default_factory=set)

    def drop_incomplete(self) -> None:
        """Leave out points without the ways of MAP_SHARE of the map's cells; without any of these,
        points without the question's base. As corners, they would hide ways that others have."""
        ways = [way for point in self.of_map for way in self.times[point]]
        least = MAP_SHARE * len(self.of_map)
        needed = {way for way, count in Counter(ways).items() if count >= least}
        needed = needed & {*self.question.offered} or {*filter(None, [self.question.base])}
        for point, times in [*self.times.items()]:
            if not needed <= times.keys() or not times.keys() & {*self.question.offered}:
                del self.times[point]

    @property
    def in_words(self) -> str:
        """The choices in words."""
        choices = self.question.choices
        return ", ".join(f"{one.label} {one.options[self.where[one.name]]}" for one in choices)

    @cached_property
    def _grid(self) -> Grid:
        return Grid(self.times)

    def answer(self, asked: Point) -> Answer | None:
        """The answer to a question; None if it was not measured."""
        ways = self.question.offered, self.question.shipped
        corners = () if asked[0] % self.question.multiple else self._grid.corners(asked)
        return answer(self.times, ways[0], corners, ways[1])

    def answer_in(self, point: Point) -> Answer:
        """The answer at a measured point."""
        found = answer(self.times, self.question.offered, [point], self.question.shipped)
        assert found is not None, "a measured point has an answer"
        return found

    def lines(self, found: Answer) -> list[str]:
        """The answer, the cells that it comes from, and what else to know."""
        ways = self.question.ways
        time, rate, share, *_ = self.figures(found, found.way).values()
        parts = ", ".join(filter(None, [time, rate, share and f"{share} of the link"]))
        lines = [f"Use {ways[found.way].words}: {parts}."]
        lines += [f"It takes {takes}."] if (takes := ways[found.way].takes) else []
        lines.append(f"Measured: {'; '.join(map(self.question.point_text, found.corners))}.")
        widest = max(self.spread.get((point, found.way), 1.0) for point in found.corners)
        lines += [f"Its runs differ by up to {ratio(widest)}."] if widest > DISAGREE else []
        return [*lines, *found.remarks(lambda way: ways[way].words)]

    def figures(self, found: Answer, way: str) -> dict[str, str]:
        """FIGURES of a way in the cells of an answer, in words."""
        seconds, cells = found.seconds[way], found.corners
        rates = [self.payload[point] / time for point, time in zip(cells, seconds, strict=True)]
        shares = [rate / self.link for rate in rates]
        returns = [self.returns.get(point, {}).get(way, math.nan) for point in cells]
        figures = (
            extent(seconds, "s"),
            extent(rates, "B/s") if min(rates) > 0 else "",
            extent(shares, "%") if min(shares) > 0 else "",
            "" if any(map(math.isnan, returns)) else extent(returns, "s"),
            ratio(found.over_fastest(way)),
        )
        return dict(zip(FIGURES, figures, strict=True))

    def cell(self, point: Point) -> str:
        """A measured cell with its answer: `256 × 4 KiB in 20.5 µs, by one cudaMemcpyAsync`."""
        found = self.answer_in(point)
        time, way = extent(found.seconds[found.way], "s"), self.question.ways[found.way]
        return f"{self.question.point_text(point)} in {time}, by {way.words}"

    def refusal(self, asked: Point) -> str:
        """Says that a question has no answer, and names the nearest measured cell."""
        text, multiple = f"not measured: {self.question.point_text(asked)}", self.question.multiple
        if asked[0] % multiple:
            return f"{text}. All measured sizes are multiples of {multiple} B"
        point = nearest(self.times, asked)
        return f"{text}. The nearest measured cell: {self.cell(point)}" if point else text


def questions_of(study: Study) -> Sequence[Question]:
    """The QUESTIONS of a study's answers.py, with the ways that the study has; none without one."""
    if not (study.folder / "answers.py").exists():
        return ()
    known = {*study.variant_names}
    return [
        replace(one, ways={name: way for name, way in one.ways.items() if name in known})
        for one in load_python(study, "answers").QUESTIONS
    ]


def cases_of_sets(study: Study, prefix: str) -> set[str]:
    """The ids of all cases in sets whose name begins with `prefix`."""
    return {
        case_id(dict(zip(one.values, point, strict=True)))
        for name, one in study.case_sets.items()
        if name.startswith(prefix)
        for point in product(*one.values.values())
    }


def link_rates(summary: pd.DataFrame, study: Study, variant: str) -> Mapping[str, float]:
    """Highest measured payload rate of a variant in B/s, by machine."""
    rows = summary[(summary["study"] == study.name) & (summary["variant"] == variant)]
    rows = _fresh(rows[rows["metric"].isin(study.time_metrics)])
    rates = rows["case"].map(lambda case: study.payloads[variant, case]) / rows["median"]
    return {str(machine): rate for machine, rate in rates.groupby(rows["machine"]).max().items()}


def situations(
    question: Question, studies: Mapping[str, Study], study: Study, summary: pd.DataFrame
) -> list[Situation]:
    """The measured times of all situations. `summary` has rows of the study and of
    the link's, of which only fresh and verified ones count."""
    of_link, variant = question.link
    links = link_rates(summary, studies[of_link], variant) if of_link in studies else {}
    held_out, of_map = cases_of_sets(study, HELD_OUT), cases_of_sets(study, MAP)
    rows = _fresh(summary[summary["study"] == study.name])
    rows = rows[rows["variant"].isin(question.ways) & rows["metric"].isin([ARRIVED, RETURNED])]
    found: dict[tuple[str, ...], Situation] = {}
    for row in rows.sort_values("machine", kind="stable").to_dict("records"):
        machine, way, payload = row["machine"], row["variant"], study.payloads
        for place in question.places(way, parse_case(row["case"])):
            where = {choice.name: str(place[choice.name]) for choice in question.choices}
            here = found.setdefault(
                (machine, *where.values()),
                Situation(question, machine, where, links.get(machine, math.inf)),
            )
            point = tuple(int(place[axis.name]) for axis in question.axes)
            here.payload[point] = payload[way, row["case"]]
            if row["metric"] == RETURNED:
                here.returns[point][way] = row["median"]
                continue
            times = here.held_out if row["case"] in held_out else here.times
            here.of_map.update([point] if row["case"] in of_map else ())
            times[point][way] = max(row["median"], here.payload[point] / here.link)
            by_run = [float(one) for one in row["by_run"].split(RUN_SEPARATOR)]
            here.spread[point, way] = max(by_run) / min(by_run)
    for here in found.values():
        here.drop_incomplete()
    return [here for here in found.values() if here.times]


def _fresh(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["stale"].eq(0) & rows["verified"].eq(1)]


def unmeasured(
    question: Question, study: Study, known: Collection[tuple[str, str, str]]
) -> Iterator[tuple[str, str, str]]:
    """Machine, way and case of the map's cells that a way can run, and that a machine with some of
    them has neither measured nor skipped: `known` are those, machine, way and case."""
    of_map = cases_of_sets(study, MAP)
    wanted = {
        (way, case.id)
        for way in question.ways
        for case in study.variant(way).cases
        if case.id in of_map and [*question.places(way, case.values)]
    }
    tried = {machine for machine, *cell in known if cell[1] in of_map and tuple(cell) in wanted}
    for machine in sorted(tried):
        yield from ((machine, *cell) for cell in sorted(wanted) if (machine, *cell) not in known)
