"""Published figures in SI units."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from analysis.base.reading import LIMIT_BYTES
from analysis.results.collect import collect
from analysis.results.store.published import FILE_COLUMNS, to_seconds
from tests.synthetic import STUDIES

GOOD = 'bytewise,"batch=128,rows=2048,draw=repeated",gpu_time,8.0,ms,ms,Notes,mean'


@pytest.mark.parametrize(
    ("value", "unit", "payload", "seconds"),
    [
        (81.3025, "ms", 0, 0.0813025),
        (4.0, "MB/s", 2 * 10**6, 0.5),
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


def write(root: Path, *rows: str) -> Path:
    path = root / "published" / "copy.csv"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([",".join(FILE_COLUMNS), *rows, ""]))
    return path


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
def test_a_wrong_file_is_left_out_by_line_and_ends_nothing(
    tmp_path: Path, old: str, new: str, fault: str
) -> None:
    write(tmp_path, GOOD)
    assert len(collect(tmp_path, STUDIES).published["copy"]) == 1
    write(tmp_path, GOOD, GOOD.replace(old, new))
    found = collect(tmp_path, STUDIES)
    assert list(found.refused) == ["published/copy.csv"] and found.published["copy"].empty
    reason = found.refused["published/copy.csv"]
    assert reason.startswith("published/copy.csv: line ") and fault in reason
    os.truncate(write(tmp_path), 2**40)
    (reason,) = collect(tmp_path, STUDIES).refused.values()
    assert reason == f"published/copy.csv: expected at most {LIMIT_BYTES} bytes, got {2**40}"
