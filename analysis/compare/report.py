"""The comparison as a table for a terminal, for a pull request, or as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from analysis.base.quantities import quantity
from analysis.compare.judge import MAX_RUNS, Judged, judge
from analysis.compare.side import Row, Side, empty_common_parts

VERDICTS: Final = ("slower", "faster", "undecided", "same")
REGRESSION, CANNOT_TELL = 1, 2
MAX_LISTED: Final = 5
MARKS: Final = {"slower": "🔴", "faster": "🟢", "undecided": "🟡", "same": "⚪"}


@dataclass(frozen=True)
class Comparison:
    """`judged` rows of both sides; `unlike` rows have no verdict, for the given reason; `same_runs`
    counts rows that have the same runs on both."""

    a: Side
    b: Side
    judged: Sequence[Judged]
    unlike: Mapping[Row, str]
    same_runs: int
    margin: float
    false_alarms: float

    @property
    def failed(self) -> dict[Row, str]:
        """Rows that B failed to run and A did not."""
        bare = {_bare(row, self.b.absent) for row in self.a.runs}
        return {
            r: why for r, why in self.b.absent.items() if why.startswith("failed") and r in bare
        }

    @property
    def missing(self) -> list[Row]:
        """Rows of A that B does not have."""
        return self._only(self.a, self.b)

    @property
    def added(self) -> list[Row]:
        """Rows of B that A does not have."""
        return self._only(self.b, self.a)

    def _only(self, one: Side, other: Side) -> list[Row]:
        return sorted(row for row in {*one.runs} - {*other.runs} if row[:-1] not in self.unlike)

    @property
    def exit_code(self) -> int:
        """REGRESSION; CANNOT_TELL if B may be slower by more than the margin somewhere; or 0."""
        verdicts = {one.verdict for one in self.judged}
        if "slower" in verdicts or self.failed:
            return REGRESSION
        may_be = (one.verdict == "undecided" and one.high > 1 + self.margin for one in self.judged)
        is_undecided = any(may_be) or self.missing or self.unlike or not self.judged
        return CANNOT_TELL if is_undecided else 0


def compare(
    a: Side, b: Side, margin: float, false_alarms: float, only: Sequence[str] = ()
) -> Comparison:
    """Compare the rows of two sides, or those whose names contain every word of `only`."""
    empty_common_parts(a, b)
    for side in (a, b):
        for kind in ("runs", "absent", "stale"):
            rows = getattr(side, kind).items()
            setattr(side, kind, {r: v for r, v in rows if all(w in " ".join(r) for w in only)})
    common = {row: (runs, b.runs[row]) for row, runs in a.runs.items() if row in b.runs}
    changed = {
        row: (old, new)
        for row, (old, both) in common.items()
        if (new := [run for run in both if run.id not in {one.id for one in old}])
    }
    judged = judge(changed, margin, false_alarms)
    same_runs = len(common) - len(changed)
    return Comparison(a, b, judged, _unlike(a, b), same_runs, margin, false_alarms)


def _unlike(a: Side, b: Side) -> dict[Row, str]:
    """Rows that have other clocks or statistics on either side, by their names, with both."""
    times: dict[Row, tuple[set[str], set[str]]] = {}
    for place, side in enumerate((a, b)):
        for *names, time in side.runs:
            times.setdefault(tuple(names), (set(), set()))[place].add(time)
    return {
        row: f"A has {' and '.join(sorted(of_a))}, B has {' and '.join(sorted(of_b))}"
        for row, (of_a, of_b) in sorted(times.items())
        if of_a and of_b and not of_a & of_b
    }


def _bare(row: Row, absent: dict[Row, str]) -> Row:
    """The row as `absent` names it, which has no metric."""
    return row if row in absent else row[:-1]


def as_json(found: Comparison) -> str:
    document: dict[str, Any] = {
        "format": "hotpath-comparison",
        "version": 2,
        "a": found.a.name,
        "b": found.b.name,
        "margin": found.margin,
        "false_alarms": found.false_alarms,
        "exit_code": found.exit_code,
        "rows": [asdict(one) for one in found.judged],
        "rows_with_the_same_runs": found.same_runs,
        "no_verdict": [[*row, why] for row, why in found.unlike.items()],
        "only_in_a": found.missing,
        "only_in_b": found.added,
    }
    for letter, side in (("a", found.a), ("b", found.b)):
        for kind in ("absent", "stale"):
            listed = getattr(side, kind)
            document[f"{kind}_in_{letter}"] = [[*row, why] for row, why in sorted(listed.items())]
        document[f"notes_{letter}"] = side.notes
    return json.dumps(document, indent=1)


def as_text(found: Comparison) -> str:
    """For a terminal."""
    table: list[tuple[str, ...]] = [("", "B against A", "95 % interval", "A", "B", "runs", "row")]
    table += [(one.verdict, *_cells(one)) for one in found.judged]
    widths = [max(len(line[column]) for line in table) for column in range(6)]
    lines = [
        "  ".join(
            [*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[-1]]
        )
        for line in table
    ]
    return "\n".join([*(lines if found.judged else []), "", *_words(found)])


def as_markdown(found: Comparison) -> str:
    """For a pull request: rows called same are folded."""
    head = "| | B against A | 95 % interval | A | B | runs | row |\n|---|---|---|---|---|---|---|"
    rows = {
        is_same: [
            f"| {MARKS[one.verdict]} {one.verdict} | {' | '.join(map(_escaped, _cells(one)))} |"
            for one in found.judged
            if (one.verdict == "same") == is_same
        ]
        for is_same in (False, True)
    }
    parts = ["\n".join([head, *rows[False]])] if rows[False] else []
    if rows[True]:
        title = f"<details><summary>{len(rows[True])} same</summary>"
        parts.append("\n".join([title, "", head, *rows[True], "", "</details>"]))
    return "\n\n".join([*parts, *map(_escaped, _words(found))])


def _escaped(text: str) -> str:
    """Foreign text in Markdown."""
    for mark in "\\`*_[]|#":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("<", "&lt;").replace(">", "&gt;")


def _cells(one: Judged) -> tuple[str, ...]:
    ends = f"{_change(one.low)} to {_change(one.high)}"
    runs = f"{one.runs[0]}, {one.runs[1]}"
    times = (quantity(one.a, "s"), quantity(one.b, "s"))
    return _change(one.ratio), ends, *times, runs, " ".join(filter(None, one.row))


def _change(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.1f} %" if ratio < 10 else f"{ratio:.1f} times"


def _words(found: Comparison) -> Iterator[str]:
    """Facts beside the table, a line each."""
    count = Counter(one.verdict for one in found.judged)
    counts = ", ".join(f"{count[verdict]} {verdict}" for verdict in VERDICTS)
    yield f"{len(found.judged)} rows: {counts}. A is {found.a.name}, B is {found.b.name}."
    yield (
        f"That any row of this table is called slower or faster by chance: at most"
        f" {found.false_alarms:.2g}. Differences below {found.margin * 100:g} % count as same."
    )
    if found.same_runs:
        yield f"{found.same_runs} rows have the same runs on both sides and were left out."
    for title, rows in (
        ("no verdict", found.unlike),
        ("only in A", dict.fromkeys(found.missing, "")),
        ("only in B", dict.fromkeys(found.added, "")),
        *(
            (f"{kind} in {letter}", getattr(side, name))
            for kind, name in (("no time", "absent"), ("stale", "stale"))
            for letter, side in (("A", found.a), ("B", found.b))
        ),
    ):
        if rows:
            yield f"{title}, {len(rows)}: {'; '.join(_listed(rows))}"
    for letter, side in (("A", found.a), ("B", found.b)):
        yield from (f"{letter}: {note}" for note in side.notes)
    yield from next_steps(found)


def _listed(rows: Mapping[Row, str]) -> list[str]:
    words = [
        f"{' '.join(filter(None, row))}{f' ({why})' if why else ''}"
        for row, why in list(rows.items())[:MAX_LISTED]
    ]
    return words if len(rows) <= MAX_LISTED else [*words, f"and {len(rows) - MAX_LISTED} more"]


def next_steps(found: Comparison) -> Iterator[str]:
    """Further measurements that would decide undecided rows."""
    undecided = [one for one in found.judged if one.verdict == "undecided"]
    if not undecided:
        return
    needed = sorted(one.runs_needed for one in undecided if one.runs_needed)
    if needed:
        half = needed[(len(needed) - 1) // 2]
        decided = sum(runs <= half for runs in needed)
        yield (
            f"Next: {half} runs of either side, in turns, decide about {decided} of the"
            f" {len(undecided)} undecided rows; {needed[-1]} runs decide {len(needed)}."
        )
    if hopeless := len(undecided) - len(needed):
        yield (
            f"{MAX_RUNS} runs of either side would leave {hopeless} undecided: they vary too much,"
            " or differ by about the margin."
        )
    names = sorted({" ".join(filter(None, one.row[:-1])) for one in undecided if one.runs_needed})
    if names:
        yield f"Measure again: {'; '.join(_listed({(name,): '' for name in names}))}"
