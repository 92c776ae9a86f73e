"""Medians over rounds, the chosen runs, and unmeasured variants."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pandas as pd
import pytest

from analysis.results.tables.ratios import ratios, ratios_by_round
from analysis.results.tables.rows import (
    DTYPES,
    TABLES,
    ClaimPartRow,
    SkippedRow,
    columns,
    read_table,
    rows_of,
)
from analysis.results.tables.summary import rounds as rounds_table
from analysis.results.tables.summary import runs, skipped, summarise
from tests.results.tables.rows import (
    CASE,
    NEW,
    OLD,
    OTHER_CASE,
    RUNS,
    only,
    rounds,
    row,
    table,
)
from tests.synthetic import COPY, STUDIES


def test_a_median_is_over_rounds_of_each_rounds_median() -> None:
    samples = table(
        [row("bytewise", value, round=0) for value in (4.0, 5.0, 30.0)],
        [row("bytewise", value, round=1) for value in (4.0, 4.0)],
        [row("bytewise", value, round=2, throttle="hw_slowdown") for value in (7.0,)],
    )
    found = only(summarise(samples, STUDIES))
    assert found["median"] == 5.0  # of 5, 4 and 7; of means, it is 7, of the samples 4.5
    assert found["ci_low"] <= 5.0 <= found["ci_high"]
    assert (found["n"], found["rounds"], found["verified"], found["stale"]) == (6, 3, 1, 0)
    assert (found["q1"], found["q3"]) == (4.0, 6.5)
    assert found["throttled"] == pytest.approx(1 / 6)
    single = only(summarise(table(rounds("bytewise", [3.0])), STUDIES))
    assert (
        single["median"] == 3.0 and math.isnan(single["ci_low"]) and math.isnan(single["ci_high"])
    )


def test_rows_are_one_a_machine_variant_case_and_metric() -> None:
    samples = table(
        rounds("bytewise", [1.0, 1.0]),
        rounds("bytewise", [2.0, 2.0, 2.0], metric="host_time"),
        rounds("bytewise", [3.0, 3.0], machine="other"),
        rounds("bytewise", [4.0, 4.0], case=OTHER_CASE),
        rounds("vectors", [5.0, 5.0]),
        [row("vectors", 5.0, verified=0)],
        [row("warps", None, status="skipped", reason="no GPU", verified=0)],
    )
    found = summarise(samples, STUDIES)
    assert sorted(found["median"]) == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert not found.duplicated(["machine", "variant", "case", "metric"]).any()
    assert dict(found.groupby("variant")["verified"].min()) == {"bytewise": 1, "vectors": 0}


def test_summary_uses_all_fresh_runs_of_a_case_or_else_the_newest() -> None:
    samples = table(
        rounds("bytewise", [1.0, 1.0], run=OLD),
        rounds("bytewise", [7.0, 7.0], run=OLD, case=OTHER_CASE),
        rounds("bytewise", [2.0, 2.0], run=NEW, stale=True),
        rounds("vectors", [3.0, 3.0], run=OLD, stale=True),
        rounds("vectors", [4.0, 4.0], run=NEW, stale=True),
        rounds("warps", [5.0, 5.0], run=OLD, host="there"),
        rounds("warps", [6.0, 6.0], run=NEW),
        # A run that skipped the case hides none that measured it.
        [row("in_flight", None, status="skipped", reason="no GPU", run=NEW)],
        rounds("in_flight", [8.0], run=OLD),
    )
    found = summarise(samples, STUDIES).set_index(["variant", "case"])
    names = ["median", "stale", "runs", "hosts", "by_run"]
    assert {key: tuple(found.loc[key, names]) for key in found.index} == {
        ("bytewise", CASE): (1.0, 0, 1, 1, "1"),
        ("bytewise", OTHER_CASE): (7.0, 0, 1, 1, "7"),
        ("vectors", CASE): (4.0, 1, 1, 1, "4"),
        ("warps", CASE): (5.5, 0, 2, 2, "5|6"),
        ("in_flight", CASE): (8.0, 0, 1, 1, "8"),
    }
    newest = runs(samples).set_index(["variant", "case"])["run"]
    assert newest["bytewise", CASE] == OLD and newest["warps", CASE] == NEW


def test_runs_outside_the_interval_of_the_others_are_counted() -> None:
    samples = table(
        *(
            rounds(name, [value], run=run)
            for name, last in (("bytewise", 1.5), ("vectors", 1.02))
            for run, value in zip(RUNS, (1.0, 1.01, 0.99, last), strict=True)
        )
    )
    found = summarise(samples, STUDIES).set_index("variant")
    assert dict(found["apart"]) == {"bytewise": 1, "vectors": 0}


def test_disturbed_rounds_of_all_runs_are_counted() -> None:
    samples = table(
        rounds("bytewise", [1.0, 1.0], run=OLD, disturbed=True),
        rounds("bytewise", [1.0, 1.0], run=NEW),
        [row("bytewise", 1.0, run=NEW, round=2, sample=n, disturbed=True) for n in (0, 1)],
        rounds("vectors", [1.0], run=OLD, disturbed=True, stale=True),
        rounds("vectors", [1.0], run=NEW),
    )
    found = runs(samples).set_index("variant")
    assert dict(found["disturbed"]) == {"bytewise": 3, "vectors": 0}


def test_a_wrong_output_in_one_round_leaves_no_figure() -> None:
    wrong = row("bytewise", None, round=2, status="failed", reason="byte 3", verified=0)
    samples = table(rounds("bytewise", [1.0, 1.0]), [wrong], rounds("vectors", [2.0, 2.0]))
    assert set(summarise(samples, STUDIES)["variant"]) == {"vectors"}
    assert ratios(ratios_by_round(samples, STUDIES)).empty
    found = only(skipped(samples))
    assert (found["variant"], found["status"], found["reason"]) == ("bytewise", "failed", "byte 3")


def test_case_without_a_measurement_gives_its_reason_once() -> None:
    samples = table(
        rounds("bytewise", [1.0, 1.0]),
        [row("vectors", None, round=n, status="failed", reason="byte 0") for n in range(3)],
        [row("warps", None, status="skipped", reason="no GPU", stale=True)],
    )
    names = ["variant", "status", "reason", "stale"]
    assert sorted(skipped(samples)[names].itertuples(index=False, name=None)) == [
        ("vectors", "failed", "byte 0", 0),
        ("warps", "skipped", "no GPU", 1),
    ]


def test_each_round_of_shown_times_stands_beside_the_speed_of_its_host() -> None:
    variant = COPY.variants[0]
    shown = {"case": COPY.shown_case(variant).id}
    measured = [
        *rounds(variant.name, [1.0, 2.0], **shown),
        *rounds(variant.name, [3.0, 4.0], sample=1, **shown),
        *rounds(variant.name, [7.0], case="rows=5"),
        *rounds(variant.name, [8.0], metric="sms_used", unit="1", **shown),
        *rounds(variant.name, [9.0], run=OLD, core_copies=math.nan, **shown),
        *rounds(variant.name, [9.0], run=OLD, stale=True, **shown),
    ]
    found = rounds_table(table(measured), {"copy": COPY})
    assert list(found["median"]) == pytest.approx([2.0, 3.0])
    assert list(found["round"]) == [0, 1]
    assert set(found["core_copies"]) == {2e10}


def test_tables_are_read_by_the_types_of_their_rows(tmp_path: Path) -> None:
    assert {str(f.type) for kind in TABLES.values() for f in fields(kind)} == set(DTYPES)
    # Text that looks like a number or a gap stays text.
    text = "machine,study,variant,case,status,reason,stale\n007,s,None,NA,skipped,1,0\n"
    (tmp_path / "s.csv").write_text(text)
    (skip,) = rows_of(read_table([tmp_path / "s.csv"], SkippedRow), SkippedRow)
    assert skip == SkippedRow("007", "s", "None", "NA", "skipped", "1", 0)
    assert type(skip.stale) is int
    # A table without rows has columns and types; missing text is empty, a missing number NaN.
    header = ",".join(columns(ClaimPartRow))
    (tmp_path / "empty.csv").touch()
    (tmp_path / "header.csv").write_text(header + "\n")
    for name in ("none.csv", "empty.csv", "header.csv"):
        empty = read_table([tmp_path / name], ClaimPartRow)
        assert list(empty.columns) == columns(ClaimPartRow)
        assert [str(empty[name].dtype) for name in ("part", "measured")] == ["int64", "float64"]
    part = pd.DataFrame([{"study": "copy", "part": 1, "hosts": 2}], columns=columns(ClaimPartRow))
    part.to_csv(tmp_path / "c.csv", index=False)
    (found,) = rows_of(read_table([tmp_path / "c.csv"], ClaimPartRow), ClaimPartRow)
    assert (found.reason, found.unit) == ("", "") and math.isnan(found.published)
    (tmp_path / "c.csv").write_text(header + "\n" + ",".join(["many"] * header.count(",")) + ",1")
    with pytest.raises(ValueError, match="many"):
        read_table([tmp_path / "c.csv"], ClaimPartRow)


@pytest.mark.parametrize(
    ("module", "slow"),
    [
        # Snakemake reads the names of tables at each start.
        ("analysis.results.tables.rows", "pandas"),
        # Every job of the pipeline would wait for these; they take longer than most studies.
        ("analysis.results.tables.of_study", "scipy.stats"),
        ("analysis.results.tables.of_study", "scipy.optimize"),
    ],
)
def test_a_slow_import_waits_for_its_use(module: str, slow: str) -> None:
    code = f"import {module}, sys; print({slow!r} in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout.strip() == "False", found.stderr
