"""Samples on disk: kept exactly, and refused by file, line and column when malformed."""

from __future__ import annotations

import csv
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.records import LARGEST
from analysis.store.folders import NAME
from analysis.store.samples import (
    CASE,
    COLUMNS,
    SMALLEST,
    MalformedSamples,
    Sample,
    parse_row,
    read_newest_run,
    read_samples,
    to_text,
    write_samples,
)
from tests.synthetic import RUN

OK = Sample(
    study="calls",
    variant="kernel",
    case="calls=100",
    metric="host_time",
    unit="s",
    value=1.25e-7,
    run=RUN,
    round=3,
    sample=1,
    verified=1,
    status="ok",
    reason="",
    throttle="sw_power_cap|sync_boost",
    sm_mhz=1980.0,
    started_at="2026-01-02T03:04:06.789Z",
)
SKIPPED = replace(OK, value=None, verified=0, status="skipped", reason="no GPU", sm_mhz=None)

PRINTABLE = st.text(st.characters(codec="utf-8")).filter(str.isprintable)
NAMES = st.from_regex(NAME, fullmatch=True)
NUMBERS = st.just(0.0) | st.floats(min_value=SMALLEST, max_value=LARGEST)
COUNTS = st.integers(min_value=0, max_value=10**9 - 1)


def measured() -> st.SearchStrategy[Sample]:
    return st.builds(
        Sample,
        study=NAMES,
        variant=NAMES,
        case=st.from_regex(CASE, fullmatch=True),
        metric=NAMES,
        unit=st.sampled_from(["s", "B", "1"]),
        value=NUMBERS,
        run=st.just(RUN),
        round=COUNTS,
        sample=COUNTS,
        verified=st.sampled_from([0, 1]),
        status=st.just("ok"),
        reason=st.just(""),
        throttle=st.sampled_from(["", "hw_slowdown", "sw_power_cap|sync_boost"]),
        sm_mhz=st.none() | NUMBERS,
        started_at=st.just(OK.started_at),
    )


def unmeasured() -> st.SearchStrategy[Sample]:
    return st.builds(
        lambda sample, status, reason: replace(sample, value=None, status=status, reason=reason),
        measured(),
        st.sampled_from(["skipped", "failed"]),
        PRINTABLE.filter(bool),
    )


def as_kept(sample: Sample) -> Sample:
    """Numbers are written with seven digits: finer than any clock, and a third smaller."""

    def short(number: float | None) -> float | None:
        return None if number is None else float(f"{number:.7g}")

    return replace(sample, value=short(sample.value), sm_mhz=short(sample.sm_mhz))


@given(samples=st.lists(measured() | unmeasured(), max_size=5))
def test_samples_come_back_as_written(
    tmp_path_factory: pytest.TempPathFactory, samples: list[Sample]
) -> None:
    path = tmp_path_factory.mktemp("samples") / "kernel.csv"
    write_samples(path, samples)
    assert read_samples(path) == [as_kept(sample) for sample in samples]
    assert [file.name for file in path.parent.iterdir()] == ["kernel.csv"]


@pytest.mark.parametrize(
    ("column", "text", "fault"),
    [
        ("status", "fine", "status: expected one of"),
        ("status", "skipped", "value: '1.25e-07' does not match status skipped"),
        ("value", "", "value: '' does not match status ok"),
        *(
            ("value", text, "value: expected 0 or a number from 1e-15 to 1e+18, got")
            for text in ("fast", "-1", "nan", "inf", "1e999", "1e-400", "1e19", "1_0", " 1", "٣")
        ),
        ("study", "Calls", "study: expected a name, got 'Calls'"),
        ("variant", "../kernel", "variant: expected a name, got '../kernel'"),
        ("case", "calls=<b>", "case: expected key=value pairs joined by commas"),
        ("case", "calls=1,", "case: expected key=value pairs joined by commas"),
        ("metric", "gpu time", "metric: expected a name"),
        ("unit", "{{ s }}", "unit: expected a unit"),
        ("throttle", "<img>", "throttle: expected words joined by bars"),
        ("reason", "why", "reason: expected none for status ok"),
        ("verified", "", "verified: expected 0 or 1, got ''"),
        ("verified", "2", "verified: expected 0 or 1, got '2'"),
        ("run", "2026-01-02", "run: expected a UTC time"),
        ("run", "2026-01-02T03:04:05+01:00", "run: expected a UTC time"),
        ("started_at", "", "started_at: expected a UTC time that there was, got ''"),
        ("round", "1.5", "round: expected a whole number"),
        ("run", "2026-02-30T03:04:05Z", "run: expected a UTC time that there was"),
        ("started_at", "2026-01-02T03:04:60Z", "started_at: expected a UTC time that there was"),
        ("round", "", "round: expected a whole number"),
        ("round", "٣", "round: expected a whole number"),
        ("round", "9" * 5000, "round: expected a whole number"),
        ("sample", "-1", "sample: expected a whole number"),
        ("sm_mhz", "high", "sm_mhz: expected 0 or a number"),
    ],
)
def test_a_malformed_row_is_refused_by_file_line_and_column(
    tmp_path: Path, column: str, text: str, fault: str
) -> None:
    path = tmp_path / "kernel.csv"
    header, good, bad = csv.reader(to_text([OK, OK]).splitlines())
    bad[COLUMNS.index(column)] = text
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, good, bad])
    with pytest.raises(MalformedSamples) as caught:
        read_samples(path)
    assert str(caught.value).startswith(f"{path}: line 3: ")
    assert fault in str(caught.value)


@pytest.mark.parametrize(("fields", "count"), [(COLUMNS[:-1], 14), ((*COLUMNS, "more"), 16)])
def test_a_row_of_another_length_is_refused(fields: tuple[str, ...], count: int) -> None:
    with pytest.raises(ValueError, match=f"expected 15 fields, got {count}"):
        parse_row(list(fields))


def test_a_skipped_row_needs_its_reason() -> None:
    _, row = csv.reader(to_text([replace(SKIPPED, reason="")]).splitlines())
    with pytest.raises(ValueError, match="reason: expected one for status skipped"):
        parse_row(row)


@pytest.mark.parametrize("text", ["", "study,variant\n", "\n".join(COLUMNS)])
def test_a_file_without_the_columns_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kernel.csv"
    path.write_text(text)
    with pytest.raises(MalformedSamples, match=r"line 1: expected the columns study,variant"):
        read_samples(path)


def test_a_file_cut_anywhere_is_refused_or_a_whole_number_of_rows(tmp_path: Path) -> None:
    samples = [OK, SKIPPED, replace(SKIPPED, reason='said "no", twice', sample=2)]
    text = to_text(samples)
    path = tmp_path / "kernel.csv"
    whole = 0
    for end in range(len(text)):
        path.write_text(text[:end])
        try:
            found = read_samples(path)
        except MalformedSamples:
            continue
        assert found == samples[: len(found)]
        whole += 1
    # Each of the header and the rows, with and without its line feed; the last one with is all.
    assert whole == 2 * (1 + len(samples)) - 1


def test_the_newest_run_comes_first_and_is_empty_where_it_is_malformed(tmp_path: Path) -> None:
    path = tmp_path / "kernel.csv"
    write_samples(path, [OK, SKIPPED, replace(OK, run="2026-01-01T03:04:05Z")])
    assert read_newest_run(path) == [OK, SKIPPED]
    path.write_text(path.read_text().replace("1.25e-07", "fast", 1))
    assert read_newest_run(path) == []
    path.unlink()
    os.mkfifo(path)
    assert read_newest_run(path) == []
