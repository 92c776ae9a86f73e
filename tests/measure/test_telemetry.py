"""Telemetry beside a run belongs to the cell it fell in."""

from __future__ import annotations

from dataclasses import replace

from analysis.measure.telemetry import CELL_COLUMNS, COLUMNS, by_variant, telemetry_text
from tests.synthetic import CALLS, RUN, samples_of


def at(second: float) -> str:
    return f"2026-01-02T03:04:{second:06.3f}Z"


def test_telemetry_belongs_to_the_cell_it_fell_in() -> None:
    base = samples_of(CALLS, CALLS.variant("kernel"), rounds=1)[0]
    cells = [("python", 0, 10.0), ("again", 0, 12.0), ("again", 1, 20.0), ("python", 1, 22.0)]
    samples = [
        replace(base, variant=variant, round=number, started_at=at(start), sample=sample)
        for variant, number, start in cells
        for sample in range(2)
    ]
    rows = [[at(second), "100"] for second in (9.9, 10.0, 11.9, 12.0, 14.9, 15.0, 17.0, 20.5, 29.0)]
    found = by_variant(rows, samples, [at(15.0), at(25.0)])
    told = {
        variant: [(line[1], line[2], line[3]) for line in lines] for variant, lines in found.items()
    }
    assert told == {
        "python": [("0", base.case, at(10.0)), ("0", base.case, at(11.9))],
        "again": [
            ("0", base.case, at(12.0)),
            ("0", base.case, at(14.9)),
            ("1", base.case, at(20.5)),
        ],
    }
    assert by_variant(rows, [], []) == {}
    lines = telemetry_text(found["python"]).splitlines()
    assert lines[0] == ",".join((*CELL_COLUMNS, *COLUMNS))
    assert lines[1] == f"{RUN},0,{base.case},{at(10.0)},100"
