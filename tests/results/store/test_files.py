"""Files of samples and of published figures: read as written, refused by line and column."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.base.reading import LIMIT_BYTES
from analysis.base.records import columns, parse_records
from analysis.results.collect import collect, frame
from analysis.results.store.keys import LONGEST_S, SMALLEST
from analysis.results.store.published import PrintedRow, to_seconds
from analysis.results.store.samples import SAMPLE_TYPES, Row, to_text
from tests.synthetic import STUDIES

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
    found = parse_records(Path("file.csv"), text, Row)
    assert to_text(found) == text
    for row, known in zip(found, rows, strict=False):
        for metric, values in known.values.items():
            assert row.values[metric] == pytest.approx(values, rel=1e-6)
    table = frame(found)
    assert set(table.columns) == set(SAMPLE_TYPES) - {"study", "run"}
    assert len(table) == sum(max(1, sum(map(len, row.values.values()))) for row in found)


def test_published_units_become_seconds() -> None:
    assert to_seconds(81.3025, "ms", 0) == pytest.approx(0.0813025)
    assert to_seconds(4.0, "MiB/s", 2**21) == 0.5
    assert to_seconds(8.0, "Gbps", 10**9) == 1.0
    assert to_seconds(4.0, "Mpps", 0) == pytest.approx(0.25e-6)
    assert to_seconds(2.0, "GiB/s", 0) != to_seconds(2.0, "GiB/s", 0)  # NaN


GOOD = 'bytewise,"batch=128,rows=2048,draw=repeated",gpu_time,8.0,ms,ms,Notes,mean'


def test_published_figures_with_a_fault_are_left_out_by_line(tmp_path: Path) -> None:
    path = tmp_path / "published" / "copy.csv"
    path.parent.mkdir()
    for old, new, fault in (
        ("", "", ""),
        ("8.0", "0", "line 3: printed: expected a number above 0, got '0'"),
        ("8.0", "1e999", "line 3: printed: expected a number above 0, got '1e999'"),
        (",ms,Notes", ",furlong,Notes", "line 3: unit_meant: expected one of "),
        ("bytewise", "<b>", "line 3: variant: expected text like"),
        ("mean", '"a\nb"', "line 4: note: expected text on one line"),
        ("mean", "mean,more", "line 3: expected 8 fields, got 9"),
    ):
        rows = [",".join(columns(PrintedRow)), GOOD, GOOD.replace(old, new) if old else ""]
        path.write_text("\n".join(filter(None, [*rows])) + "\n")
        found = collect(tmp_path, STUDIES)
        assert len(found.published["copy"]) == (not fault)
        reason = found.refused.get("published/copy.csv", "")
        assert reason.startswith(f"published/copy.csv: {fault}" if fault else "")
    os.truncate(path, 2**40)
    (reason,) = collect(tmp_path, STUDIES).refused.values()
    assert reason == f"published/copy.csv: expected at most {LIMIT_BYTES} bytes, got {2**40}"
