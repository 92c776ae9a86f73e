"""The comparison as a table, or as JSON."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from analysis.base.quantities import quantity
from analysis.compare.judge import (
    DIFFERENT,
    EQUAL,
    EQUAL_WITHIN,
    FALSE_ALARMS,
    UNDECIDED,
    judge,
)
from analysis.compare.side import Row, Side, empty_common_parts

REGRESSION, CANNOT_TELL = 1, 2
MAX_LISTED: Final = 5
HEAD: Final = ("", "B against A", "95 % interval", "A", "B", "runs", "row")
NO_VERDICT: Final = "no verdict"


@dataclass(frozen=True)
class Comparison:
    """`judged` has the rows of both sides, by `judge`; `unjudged` all others by what is said of
    them, each with its reason. `same_runs` counts rows that have the same runs on both sides."""

    a: Side
    b: Side
    judged: pd.DataFrame
    unjudged: Mapping[str, Mapping[Row, str]]
    same_runs: int
    margin: float

    @property
    def exit_code(self) -> int:
        """REGRESSION; CANNOT_TELL if B may be slower by more than the margin somewhere; or 0."""
        known = {*self.a.runs, *(row[:-1] for row in self.a.runs)}
        fails = any(r in known and why.startswith("failed") for r, why in self.b.absent.items())
        if fails or self.judged["direction"].eq("slower").any():
            return REGRESSION
        undecided = self.judged[self.judged["verdict"] == UNDECIDED]
        lacks = self.unjudged["only in A"] or self.unjudged[NO_VERDICT] or self.judged.empty
        return CANNOT_TELL if lacks or (undecided["high"] > 1 + self.margin).any() else 0


def compare(a: Side, b: Side, margin: float = EQUAL_WITHIN, only: Sequence[str] = ()) -> Comparison:
    """Compare the rows of two sides, or those whose names contain every word of `only`."""
    empty_common_parts(a, b)
    for side in (a, b):
        side.keep(lambda row: all(word in " ".join(row) for word in only))
    common = {row: (runs, b.runs[row]) for row, runs in a.runs.items() if row in b.runs}
    changed = {
        row: (old, new)
        for row, (old, both) in common.items()
        if (new := [run for run in both if run.id not in {known.id for known in old}])
    }
    named_a, named_b, known = ({row[:-1] for row in rows} for rows in (a.runs, b.runs, common))
    unlike = {
        names: f"A has {a.times(names)}, B has {b.times(names)}"
        for names in sorted(named_a & named_b - known)
    }
    unjudged = {
        NO_VERDICT: unlike,
        "only in A": {row: "" for row in a.runs if row not in b.runs and row[:-1] not in unlike},
        "only in B": {row: "" for row in b.runs if row not in a.runs and row[:-1] not in unlike},
        "no time in A": a.absent,
        "no time in B": b.absent,
    }
    same_runs = len(common) - len(changed)
    return Comparison(a, b, judge(changed, margin), unjudged, same_runs, margin)


def as_json(found: Comparison) -> str:
    rows = {
        title.replace(" ", "_").lower(): [[*row, why] for row, why in sorted(of_title.items())]
        for title, of_title in found.unjudged.items()
    }
    document = {
        "format": "hotpath-comparison",
        "version": 4,
        "a": found.a.name,
        "b": found.b.name,
        "margin": found.margin,
        "false_alarms": FALSE_ALARMS,
        "exit_code": found.exit_code,
        "rows": found.judged.drop(columns="direction").to_dict("records"),
        "rows_with_the_same_runs": found.same_runs,
        "notes_a": found.a.notes,
        "notes_b": found.b.notes,
    }
    return json.dumps(document | rows, indent=1)


def as_text(found: Comparison) -> str:
    """A table with all that was judged, and facts beside it."""
    table = [HEAD, *map(_cells, found.judged.itertuples())] if len(found.judged) else []
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in table
    ]
    return "\n".join([*lines, "", *_facts(found)])


def _cells(row: Any) -> tuple[str, ...]:
    verdict = ", ".join(filter(None, (row.verdict, row.direction)))
    interval = f"{_change(row.low)} to {_change(row.high)}"
    times, runs = (quantity(row.a, "s"), quantity(row.b, "s")), f"{row.runs[0]}, {row.runs[1]}"
    return verdict, _change(row.ratio), interval, *times, runs, _name(row.row)


def _change(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.1f} %" if ratio < 10 else f"{ratio:.1f} times"


def _name(row: Row) -> str:
    return " ".join(filter(None, row))


def _facts(found: Comparison) -> Iterator[str]:
    """Facts beside the table, a line each."""
    count = Counter([*found.judged["verdict"], *found.judged["direction"]])
    yield (
        f"{len(found.judged)} rows: {count[DIFFERENT]} different ({count['slower']} slower,"
        f" {count['faster']} faster), {count[EQUAL]} equal within {found.margin * 100:g} %,"
        f" {count[UNDECIDED]} undecided. A is {found.a.name}, B is {found.b.name}."
    )
    yield (
        "Probability that any row of this table is called different by chance: at most"
        f" {FALSE_ALARMS:.2g}."
    )
    if found.same_runs:
        yield f"{found.same_runs} rows have the same runs on both sides and were left out."
    for title, rows in found.unjudged.items():
        names = [f"{_name(row)}{f' ({why})' * bool(why)}" for row, why in sorted(rows.items())]
        if rest := names[MAX_LISTED:]:
            names[MAX_LISTED:] = [f"and {len(rest)} more"]
        if names:
            yield f"{title}, {len(rows)}: {'; '.join(names)}"
    for letter, side in (("A", found.a), ("B", found.b)):
        yield from (f"{letter}: {note}" for note in side.notes)
    if count[UNDECIDED]:
        yield "Undecided rows vary too much or differ by about the margin: measure more runs."
