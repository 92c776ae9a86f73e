"""Samples on disk: exact values, and errors with file, line and column."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.base.files import write_whole
from analysis.base.records import MAX_NUMBER
from analysis.results.store.folders import NAME
from analysis.results.store.samples import (
    CASE,
    FILE_COLUMNS,
    SMALLEST,
    MalformedSamples,
    Sample,
    line_of,
    parse_samples,
    read_newest_run,
    read_round,
    read_samples,
    to_text,
    write_round,
)
from tests.synthetic import RUN

OK = Sample(
    study="calls", variant="kernel", case="calls=100", metric="host_time", unit="s", value=1.25e-7,
    run=RUN, round=3, sample=0, verified=1, status="ok", reason="",
    throttle="sw_power_cap|sync_boost", sm_mhz=1980.0, started_at="2026-01-02T03:04:06.789Z",
)  # fmt: skip
NOTHING: dict[str, Any] = {"metric": "", "unit": "", "value": None, "verified": 0, "sm_mhz": None}
SKIPPED = replace(OK, **NOTHING, case="calls=1", status="skipped", reason="no GPU")
PATH = Path("results/box/calls/kernel.csv")
VALUES = {"host_time [s]": [1.25e-7, 2.5e-7], "driver_calls [1]": [3.0]}

PRINTABLE = st.text(st.characters(codec="utf-8")).filter(str.isprintable)
NUMBERS = st.just(0.0) | st.floats(min_value=SMALLEST, max_value=MAX_NUMBER)


def taken(values: dict[str, list[float]] = VALUES, **facts: Any) -> list[Sample]:
    """The samples of one row, metric by metric."""
    return [
        replace(OK, metric=name, unit=unit[:-1], value=value, sample=number, **facts)
        for column, several in values.items()
        for name, unit in [column.split(" [")]
        for number, value in enumerate(several)
    ]


def rows() -> st.SearchStrategy[list[Sample]]:
    """The samples of a row: values of some metrics, or a reason for none."""
    facts = {
        "study": st.just("calls"),
        "variant": st.just("kernel"),
        "case": st.from_regex(CASE, fullmatch=True),
        "round": st.integers(min_value=0, max_value=10**9 - 1),
        "verified": st.sampled_from([0, 1]),
        "throttle": st.sampled_from(["", "hw_slowdown", "sw_power_cap|sync_boost"]),
        "sm_mhz": st.none() | NUMBERS,
    }
    metric = st.from_regex(NAME, fullmatch=True).map(lambda name: f"{name} [s]")
    values = st.dictionaries(metric, st.lists(NUMBERS, min_size=1, max_size=3), min_size=1)
    measured = st.builds(taken, values, **facts)
    status, reason = st.sampled_from(["skipped", "failed"]), PRINTABLE.filter(bool)
    facts |= {name: st.just(value) for name, value in NOTHING.items()}
    unmeasured = st.builds(replace, st.just(OK), status=status, reason=reason, **facts)
    return measured | unmeasured.map(lambda sample: [sample])


def as_kept(sample: Sample) -> Sample:
    """Numbers are written with seven digits: finer than any clock, and a third smaller."""

    def short(number: float | None) -> float | None:
        return None if number is None else float(f"{number:.7g}")

    return replace(sample, value=short(sample.value), sm_mhz=short(sample.sm_mhz))


def cell_of(row: list[Sample]) -> tuple[str, str, int]:
    return (row[0].case, row[0].run, row[0].round)


@given(table=st.lists(rows(), max_size=5, unique_by=cell_of))
def test_samples_survive_a_round_trip(
    tmp_path_factory: pytest.TempPathFactory, table: list[list[Sample]]
) -> None:
    path = tmp_path_factory.mktemp("samples") / "calls" / "kernel.csv"
    samples = [sample for row in table for sample in row]
    write_whole(path, to_text(samples))
    found = read_samples(path)
    assert sorted(map(repr, found)) == sorted(repr(as_kept(sample)) for sample in samples)
    assert list(dict.fromkeys(cell_of([one]) for one in found)) == list(map(cell_of, table))
    assert to_text(found) == path.read_text()
    assert [file.name for file in path.parent.iterdir()] == ["kernel.csv"]


def test_a_file_has_a_row_per_round_and_a_column_per_metric() -> None:
    assert to_text([*taken(), SKIPPED]) == (
        "case,run,round,host_time [s],driver_calls [1],"
        "verified,status,reason,throttle,sm_mhz,started_at\n"
        f"calls=100,{RUN},3,1.25e-07 2.5e-07,3,"
        "1,ok,,sw_power_cap|sync_boost,1980,2026-01-02T03:04:06.789Z\n"
        f"calls=1,{RUN},3,,,0,skipped,no GPU,sw_power_cap|sync_boost,,2026-01-02T03:04:06.789Z\n"
    )


@pytest.mark.parametrize(
    ("samples", "fault"),
    [
        ([replace(OK, sample=1)], "sample: expected 0, got"),
        ([OK, OK], "sample: expected 1, got"),
        ([OK, replace(OK, metric="gpu_time", sm_mhz=2.0)], "expected one row per case, run, round"),
    ],
)
def test_invalid_samples_are_not_written(samples: list[Sample], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        to_text(samples)


def test_a_sample_is_found_by_its_place(tmp_path: Path) -> None:
    path = tmp_path / "kernel.csv"
    write_whole(path, to_text([SKIPPED, *taken(), *taken(round=4)]))
    assert [line_of(path, place) for place in range(7)] == [2, 3, 3, 3, 4, 4, 4]


def test_rounds_of_several_variants_survive_a_round_trip(tmp_path: Path) -> None:
    samples = [*taken(), SKIPPED, *taken(variant="copy")]
    write_round(tmp_path / "round.csv", samples)
    assert read_round(tmp_path / "round.csv") == samples


@pytest.mark.parametrize(
    ("column", "text", "fault"),
    [
        ("status", "fine", "status: expected one of"),
        ("status", "skipped", "reason: expected one for status skipped"),
        ("host_time [s]", "", "status: expected one of ('skipped', 'failed') by the values, got"),
        *(
            ("host_time [s]", text, "host_time: expected 0 or a number from 1e-15 to 1e+18, got")
            for text in (
                *("fast", "-1", "nan", "inf", "1e999", "1e-400", "1e19", "1_0", " 1", "٣"),
                *("1 nan", "1  1", "1 ", " ", "1\t1", "1|1", "1;1", "1 -1", "1\u00a01"),
            )
        ),
        *(
            ("case", text, "case: expected key=value pairs joined by commas, got")
            for text in ("calls=<b>", "calls=1,")
        ),
        ("throttle", "<img>", "throttle: expected words joined by bars"),
        ("reason", "why", "reason: expected none for status ok"),
        *(("verified", text, f"verified: expected 0 or 1, got '{text}'") for text in ("", "2")),
        *(
            (column, text, f"{column}: expected a UTC timestamp such as 2026-11-24T06:00:00Z, got")
            for column, texts in {
                "run": ("2026-01-02", "2026-01-02T03:04:05+01:00", "2026-02-30T03:04:05Z"),
                "started_at": ("", "2026-01-02T03:04:60Z"),
            }.items()
            for text in texts
        ),
        *(
            ("round", text, "round: expected a whole number, got")
            for text in ("1.5", "", "٣", "9" * 5000)
        ),
        ("sm_mhz", "high", "sm_mhz: expected 0 or a number"),
    ],
)
def test_malformed_row_is_rejected_with_file_line_and_column(
    tmp_path: Path, column: str, text: str, fault: str
) -> None:
    path = tmp_path / "kernel.csv"
    header, good, bad = csv.reader(to_text([replace(OK, round=2), OK]).splitlines())
    bad[header.index(column)] = text
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, good, bad])
    with pytest.raises(MalformedSamples) as caught:
        read_samples(path)
    assert str(caught.value).startswith(f"{path}: line 3: ")
    assert fault in str(caught.value)


def changed(edit: Callable[[list[list[str]]], object]) -> str:
    """A file of two rows, its cells edited, the header among them."""
    table = list(csv.reader(to_text([*taken(), SKIPPED]).splitlines()))
    edit(table)
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(table)
    return buffer.getvalue()


HEADER = ",".join(FILE_COLUMNS)


@pytest.mark.parametrize(
    ("edit", "fault"),
    [
        (lambda rows: rows[2].pop(), "line 3: expected 11 fields, got 10"),
        (lambda rows: rows[2].append("1"), "line 3: expected 11 fields, got 12"),
        (lambda rows: rows.insert(1, []), "line 2: expected 11 fields, got 0"),
        (lambda rows: rows.append(rows[1]), "line 4: case, run, round: expected every row once"),
        (lambda rows: rows[2].__setitem__(3, "1"), "line 3: status: expected ok by the values"),
        (lambda rows: rows[2].__setitem__(7, ""), "line 3: reason: expected one for status skipp"),
        (lambda rows: rows.clear(), f"line 1: expected the columns {HEADER}, every metric once"),
        *(
            (lambda rows, name=name: rows[0].__setitem__(3, name), "line 1: expected the columns")
            for name in (
                *("", "host_time", "host_time []", "[s]", "host time [s]", "host_time[s]"),
                *("host_time [s] ", "host_time [{{ s }}]", "<b> [s]", "../host_time [s]", "case"),
                *("driver_calls [1]", "driver_calls [s]"),
            )
        ),
        (lambda rows: rows[0].__setitem__(0, "cases"), "line 1: expected the columns"),
        (lambda rows: rows[0].__setitem__(-1, "started"), "line 1: expected the columns"),
        (lambda rows: rows[0].reverse(), "line 1: expected the columns"),
        (lambda rows: rows[0].__delitem__(slice(5, None)), "line 1: expected the columns"),
    ],
)
def test_file_of_another_format_is_rejected_with_its_line(
    edit: Callable[[list[list[str]]], object], fault: str
) -> None:
    with pytest.raises(MalformedSamples) as caught:
        parse_samples(PATH, changed(edit))
    assert str(caught.value).startswith(f"{PATH}: {fault}")


def test_too_many_samples_of_a_machine_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    text = to_text([SKIPPED, *taken()])
    assert len(parse_samples(PATH, text)) == 4
    monkeypatch.setattr("analysis.results.store.samples.MACHINE_LIMIT_SAMPLES", 3)
    with pytest.raises(MalformedSamples, match="line 3: expected at most 3 samples, got more"):
        parse_samples(PATH, text)


def test_truncated_file_is_rejected_or_has_whole_rows(tmp_path: Path) -> None:
    samples = [OK, SKIPPED, replace(SKIPPED, reason='said "no", twice', round=4)]
    text = to_text(samples)
    path = tmp_path / "calls" / "kernel.csv"
    path.parent.mkdir()
    whole = 0
    for end in range(len(text)):
        path.write_text(text[:end])
        try:
            found = read_samples(path)
        except MalformedSamples:
            continue
        assert found == samples[: len(found)]
        whole += 1
    # Cuts after the header and after each row, with and without the line feed.
    assert whole == 2 * (1 + len(samples)) - 1


def test_the_newest_run_comes_first_and_is_empty_where_it_is_malformed(tmp_path: Path) -> None:
    path = tmp_path / "calls" / "kernel.csv"
    write_whole(path, to_text([OK, SKIPPED, replace(OK, run="2026-01-01T03:04:05Z")]))
    assert read_newest_run(path) == [OK, SKIPPED]
    path.write_text(path.read_text().replace("1.25e-07", "fast", 1))
    assert read_newest_run(path) == []
    path.unlink()
    os.mkfifo(path)
    assert read_newest_run(path) == []
