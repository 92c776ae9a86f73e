"""Comparisons of published figures, which no machine decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.study.claims.studies import (
    PUBLISHED,
    claim,
    claims_of,
    publish,
    write_study,
)

MEGABYTES = {"limit": 64e3, "unit": "MB/s"}


def test_units_of_the_published_rows(tmp_path: Path) -> None:
    study = write_study(tmp_path, claim(kind="units", printed="GB/s", meant="GiB/s"))
    results = tmp_path / "results"
    assert [row["verdict"] for row in claims_of(results, study)] == ["not tested"]
    publish(results)
    (row,) = claims_of(results, study)
    assert (row["machine"], row["verdict"]) == ("published", "holds")
    assert row["measured"] == pytest.approx(2**30 / 1e9, rel=1e-3)
    assert row["reason"].endswith("in 2 if read in GiB/s and in 0 if read in GB/s, of 2 rows")
    for read_as_printed_or_neither in ("8.00", "9.00", "7.46"):
        publish(results, PUBLISHED.replace("7.45,GB", f"{read_as_printed_or_neither},GB"))
        (row,) = claims_of(results, study)
        assert row["verdict"] == "does not hold"


def test_coarse_published_rate_confirms_no_unit(
    tmp_path: Path,
) -> None:
    study = write_study(tmp_path, claim(kind="units", printed="GB/s", meant="GiB/s"))
    text = PUBLISHED.replace("8.0000", "16.000").replace("7.45", "4")  # 4.00 GB/s, 3.73 GiB/s
    publish(tmp_path / "results", "\n".join(text.splitlines()[:3]) + "\n")
    (row,) = claims_of(tmp_path / "results", study)
    assert row["verdict"] == "does not hold"
    assert "in 1 if read in GiB/s and in 1 if read in GB/s" in row["reason"]


def test_a_printed_share_is_held_against_the_printed_time(tmp_path: Path) -> None:
    test = {"kind": "printed_share", "of": "fast", "limit": 64.0, "unit": "GB/s", "within": 0.01}
    study = write_study(tmp_path, claim(**test))
    results = tmp_path / "results"
    publish(results)
    (row,) = claims_of(results, study)
    assert (row["machine"], row["verdict"]) == ("published", "does not hold")
    assert row["published"] == pytest.approx(29.80 / 64)
    assert row["measured"] == pytest.approx(0.5)
    publish(results, PUBLISHED.replace("29.80", "32.00"))
    (row,) = claims_of(results, study)
    assert row["verdict"] == "holds"
    publish(results, PUBLISHED.replace("29.80,GB/s,GiB/s", "32000,MB/s,MB/s"))
    (row,) = claims_of(results, write_study(tmp_path, claim(**test | MEGABYTES)))
    assert row["measured"] == row["published"] == pytest.approx(0.5)


def test_a_printed_speedup_is_of_one_source(tmp_path: Path) -> None:
    test = {"kind": "printed_speedup", "of": "fast", "over": "slow", "at_least": 3}
    study = write_study(tmp_path, claim(**test, source="Notes"))
    other = "slow,rows=1000000,gpu_time,5.0,ms,ms,Other,mean\n"
    results = tmp_path / "results"
    publish(results, PUBLISHED + other)
    (row,) = claims_of(results, study)
    assert (row["machine"], row["verdict"]) == ("published", "holds")
    assert row["measured"] == row["ci_low"] == row["ci_high"] == pytest.approx(4.0)
    publish(results, (PUBLISHED + other).replace("8.0000", "5.0000"))
    (row,) = claims_of(results, study)
    assert (row["verdict"], row["measured"]) == ("does not hold", pytest.approx(2.5))
    (row,) = claims_of(results, write_study(tmp_path, claim(**test, source="Other")))
    assert row["reason"] == "missing: Other printed no rate of fast in this case"
