"""Published figures in SI units."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from analysis.base.reading import LIMIT_BYTES
from analysis.results.collect import collect
from analysis.results.store.published import (
    FILE_COLUMNS,
    to_seconds,
)
from tests.synthetic import STUDIES

GOOD = 'bytewise,"batch=128,rows=2048,draw=repeated",gpu_time,8.0,ms,ms,Notes,mean'


@pytest.mark.parametrize(
    ("value", "unit", "payload", "seconds"),
    [
        (2.5, "s", 0, 2.5),
        (81.3025, "ms", 0, 0.0813025),
        (3.0, "us", 0, 3e-6),
        (3.0, "ns", 0, 3e-9),
        (4.0, "B/s", 2, 0.5),
        (4.0, "MB/s", 2 * 10**6, 0.5),
        (1.0, "GB/s", 10**9, 1.0),
        (4.0, "MiB/s", 2**21, 0.5),
        (2.0, "GiB/s", 2**30, 0.5),
        (8.0, "Gbps", 10**9, 1.0),
        (4.0, "Mpps", 0, 0.25e-6),
        (2.0, "GiB/s", 0, math.nan),
        (2.0, "x", 0, math.nan),
    ],
)
def test_published_units_become_seconds(
    value: float, unit: str, payload: int, seconds: float
) -> None:
    found = to_seconds(value, unit, payload)
    assert found == pytest.approx(seconds, nan_ok=True)


def write(root: Path, *rows: str) -> Path:
    path = root / "published" / "copy.csv"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([",".join(FILE_COLUMNS), *rows, ""]))
    return path


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (GOOD.replace("8.0", "0"), "printed: expected a number above 0, got '0'"),
        (GOOD.replace("8.0", "1e999"), "printed: expected a number above 0, got '1e999'"),
        (GOOD.replace("8.0", "nan"), "printed: expected a number above 0, got 'nan'"),
        (GOOD.replace(",ms,Notes", ",furlong,Notes"), "unit_meant: expected one of "),
        (GOOD.replace("bytewise", "<b>"), "variant: expected text like"),
        (GOOD.replace("draw=", "<b>="), "case: expected key=value pairs"),
        (GOOD.replace("mean", '"a\nb"'), "note: expected text on one line"),
        (GOOD + ",more", "expected 8 fields, got 9"),
    ],
)
def test_a_wrong_file_is_left_out_by_line_and_ends_nothing(
    tmp_path: Path, row: str, fault: str
) -> None:
    write(tmp_path, GOOD)
    assert len(collect(tmp_path, STUDIES).published["copy"]) == 1
    write(tmp_path, GOOD, row)
    found = collect(tmp_path, STUDIES)
    assert list(found.refused) == ["published/copy.csv"]
    reason = found.refused["published/copy.csv"]
    assert reason.startswith("published/copy.csv: line ") and fault in reason
    assert found.published["copy"].empty


def test_a_huge_file_is_left_out_unread(tmp_path: Path) -> None:
    os.truncate(write(tmp_path), 2**40)
    (reason,) = collect(tmp_path, STUDIES).refused.values()
    assert reason == f"published/copy.csv: expected at most {LIMIT_BYTES} bytes, got {2**40}"
