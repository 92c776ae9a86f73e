"""Files of samples and of published figures: read as written, refused by line and column."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.base.reading import LIMIT_BYTES
from analysis.results.collect import collect, frame
from analysis.results.store.keys import LONGEST_S, SMALLEST
from analysis.results.store.published import FILE_COLUMNS, to_seconds
from analysis.results.store.samples import SAMPLE_TYPES, Row, parse_rows, to_text
from tests.synthetic import STUDIES

PATH = Path("box/calls/20260102T030405Z-00000000.csv")
AT = "2026-01-02T03:04:06.789Z"
SKIPPED = Row("kernel", "calls=1", 3, {}, 0, "skipped", "no GPU", "", None, AT)
NUMBERS = st.lists(st.just(0.0) | st.floats(SMALLEST, LONGEST_S), min_size=1, max_size=4)
METRICS = st.sampled_from([("host_time", "s"), ("driver_calls", "1")])
ROWS = st.lists(
    st.builds(
        replace,
        st.just(SKIPPED),
        variant=st.sampled_from(["kernel", "copy"]),
        case=st.sampled_from(["", "calls=1", "calls=100,draw=once"]),
        round=st.integers(0, 63),
        values=st.dictionaries(METRICS, NUMBERS, min_size=1),
        status=st.just("ok"),
        reason=st.just(""),
        sm_mhz=st.none() | st.just(1980.0),
    ),
    max_size=8,
    unique_by=lambda row: row.key,
)


@given(ROWS)
def test_rows_survive_a_round_trip(rows: list[Row]) -> None:
    text = to_text([*rows, replace(SKIPPED, variant="skipped")])
    found = parse_rows(PATH, text)
    assert to_text(found) == text
    for row, known in zip(found, rows, strict=False):
        for metric, values in known.values.items():
            assert row.values[metric] == pytest.approx(values, rel=1e-6)
    table = frame(found)
    assert set(table.columns) == set(SAMPLE_TYPES) - {"study", "run"}
    assert len(table) == sum(max(1, sum(map(len, row.values.values()))) for row in found)


@pytest.mark.parametrize(
    ("value", "unit", "payload", "seconds"),
    [
        (81.3025, "ms", 0, 0.0813025),
        (4.0, "MiB/s", 2**21, 0.5),
        (8.0, "Gbps", 10**9, 1.0),
        (4.0, "Mpps", 0, 0.25e-6),
        (2.0, "GiB/s", 0, math.nan),
        (2.0, "x", 0, math.nan),
    ],
)
def test_published_units_become_seconds(
    value: float, unit: str, payload: int, seconds: float
) -> None:
    assert to_seconds(value, unit, payload) == pytest.approx(seconds, nan_ok=True)


GOOD = 'bytewise,"batch=128,rows=2048,draw=repeated",gpu_time,8.0,ms,ms,Notes,mean'


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("8.0", "0", "printed: expected a number above 0, got '0'"),
        ("8.0", "1e999", "printed: expected a number above 0, got '1e999'"),
        (",ms,Notes", ",furlong,Notes", "unit_meant: expected one of "),
        ("bytewise", "<b>", "variant: expected text like"),
        ("mean", '"a\nb"', "note: expected text on one line"),
        ("mean", "mean,more", "expected 8 fields, got 9"),
    ],
)
def test_published_figures_with_a_fault_are_left_out_by_line(
    tmp_path: Path, old: str, new: str, fault: str
) -> None:
    path = tmp_path / "published" / "copy.csv"
    path.parent.mkdir()
    for rows, count in ([GOOD], 1), ([GOOD, GOOD.replace(old, new)], 0):
        path.write_text("\n".join([",".join(FILE_COLUMNS), *rows, ""]))
        found = collect(tmp_path, STUDIES)
        assert len(found.published["copy"]) == count
    assert list(found.refused) == ["published/copy.csv"]
    reason = found.refused["published/copy.csv"]
    assert reason.startswith("published/copy.csv: line ") and fault in reason


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "published" / "copy.csv"
    path.parent.mkdir()
    path.touch()
    os.truncate(path, 2**40)
    (reason,) = collect(tmp_path, STUDIES).refused.values()
    assert reason == f"published/copy.csv: expected at most {LIMIT_BYTES} bytes, got {2**40}"
