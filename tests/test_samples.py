"""Samples and provenance on disk: kept exactly, kept small, and refused by name when damaged."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import ROOT
from analysis.errors import HotpathError
from analysis.source import fingerprint
from analysis.store.collect import chosen, collect
from analysis.store.results import (
    CorruptResults,
    add_run,
    load_variant,
    machines,
    shrink,
    variant_files,
)
from analysis.store.samples import (
    COLUMNS,
    KEPT_RUNS,
    MACHINE_LIMIT_BYTES,
    MalformedSamples,
    Sample,
    checksum,
    parse_row,
    read_samples,
    to_text,
    write_samples,
)
from analysis.study import Study, discover
from tests.synthetic import RUN, provenance_of, samples_of, write_machine

METHOD = discover()["method"]
RUNS = [f"2026-01-0{day}T03:04:05Z" for day in range(1, 6)]

OK = Sample(
    study="method",
    variant="clock",
    case="bytes=0",
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

PRINTABLE = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]))
NUMBERS = st.floats(min_value=0, max_value=1e30, allow_subnormal=False)
COUNTS = st.integers(min_value=0, max_value=10**9)


def measured() -> st.SearchStrategy[Sample]:
    return st.builds(
        Sample,
        study=PRINTABLE,
        variant=PRINTABLE,
        case=PRINTABLE,
        metric=PRINTABLE,
        unit=PRINTABLE,
        value=NUMBERS,
        run=st.just(RUN),
        round=COUNTS,
        sample=COUNTS,
        verified=st.sampled_from([0, 1]),
        status=st.just("ok"),
        reason=PRINTABLE,
        throttle=PRINTABLE,
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
    short = {
        name: None if number is None else float(f"{number:.7g}")
        for name, number in (("value", sample.value), ("sm_mhz", sample.sm_mhz))
    }
    return replace(sample, **short)


@given(samples=st.lists(measured() | unmeasured(), max_size=5))
def test_samples_come_back_as_written(
    tmp_path_factory: pytest.TempPathFactory, samples: list[Sample]
) -> None:
    path = tmp_path_factory.mktemp("samples") / "clock.csv"
    write_samples(path, samples)
    assert read_samples(path) == [as_kept(sample) for sample in samples]
    assert [file.name for file in path.parent.iterdir()] == ["clock.csv"]


@pytest.mark.parametrize(
    ("column", "text", "fault"),
    [
        ("status", "fine", "status: expected one of"),
        ("status", "skipped", "value: '1.25e-07' does not match status skipped"),
        ("value", "", "value: '' does not match status ok"),
        ("value", "fast", "value: expected a number"),
        ("value", "-1", "value: expected a number of at least 0"),
        ("value", "nan", "value: expected a number"),
        ("value", "inf", "value: expected a number"),
        ("verified", "", "verified: expected 0 or 1, got ''"),
        ("verified", "2", "verified: expected 0 or 1, got '2'"),
        ("run", "2026-01-02", "run: expected a UTC time"),
        ("run", "2026-01-02T03:04:05+01:00", "run: expected a UTC time"),
        ("started_at", "", "started_at: expected a UTC time, got ''"),
        ("round", "1.5", "round: expected a whole number"),
        ("round", "", "round: expected a whole number"),
        ("sample", "-1", "sample: expected a whole number"),
        ("sm_mhz", "high", "sm_mhz: expected a number"),
    ],
)
def test_a_malformed_row_is_refused_by_file_line_and_column(
    tmp_path: Path, column: str, text: str, fault: str
) -> None:
    path = tmp_path / "clock.csv"
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
    path = tmp_path / "clock.csv"
    path.write_text(text)
    with pytest.raises(MalformedSamples, match=r"line 1: expected the columns study,variant"):
        read_samples(path)


def test_a_file_cut_anywhere_is_refused_or_a_whole_number_of_rows(tmp_path: Path) -> None:
    samples = [OK, SKIPPED, replace(OK, reason='said "no", twice', sample=2)]
    text = to_text(samples)
    path = tmp_path / "clock.csv"
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


def store(root: Path, run: str, study: Study = METHOD, variant: str = "clock") -> Path:
    chosen = study.variant(variant)
    samples = samples_of(study, chosen, run=run, rounds=2)
    add_run(root, "box", study.name, variant, samples, provenance_of(study, chosen, run=run))
    (root / "box" / "machine.json").write_text('{"gpu": null}')
    return root / "box" / study.name / f"{variant}.csv"


def runs_of(path: Path) -> list[str]:
    """Runs in the order of the rows."""
    return list(dict.fromkeys(sample.run for sample in load_variant(path).samples))


def test_the_newest_runs_are_kept_newest_first(tmp_path: Path) -> None:
    for run in RUNS:
        path = store(tmp_path, run)
    newest = RUNS[::-1][:KEPT_RUNS]
    assert runs_of(path) == newest
    loaded = load_variant(path)
    assert list(loaded.run_provenance()) == newest
    assert loaded.provenance["samples_sha256"] == checksum(path)
    assert loaded.fresh_runs(fingerprint(METHOD, METHOD.variant("clock"))) == newest


def test_runs_that_were_measured_in_another_way_are_not_kept(tmp_path: Path) -> None:
    path = store(tmp_path, RUNS[0])
    clock = METHOD.variant("clock")
    changed = provenance_of(METHOD, clock, run=RUNS[1])
    changed["method_version"] += 1
    add_run(tmp_path, "box", "method", "clock", samples_of(METHOD, clock, run=RUNS[1]), changed)
    assert runs_of(path) == [RUNS[1]]
    assert list(load_variant(path).run_provenance()) == [RUNS[1]]


def test_a_run_that_is_added_again_takes_its_own_place(tmp_path: Path) -> None:
    for run in (RUNS[0], RUNS[1], RUNS[1]):
        path = store(tmp_path, run)
    assert runs_of(path) == [RUNS[1], RUNS[0]]
    once = samples_of(METHOD, METHOD.variant("clock"), rounds=2)
    assert len(load_variant(path).samples) == 2 * len(once)


def test_earlier_provenance_stands_beside_its_samples(tmp_path: Path) -> None:
    store(tmp_path, RUNS[0])
    path = tmp_path / "box" / "method" / "clock.csv"
    clock = METHOD.variant("clock")
    changed = provenance_of(METHOD, clock, run=RUNS[1]) | {"source_sha256": "other"}
    add_run(tmp_path, "box", "method", "clock", samples_of(METHOD, clock, run=RUNS[1]), changed)
    loaded = load_variant(path)
    assert loaded.fresh_runs(fingerprint(METHOD, clock)) == [RUNS[0]]
    assert loaded.fresh_runs("other") == [RUNS[1]]
    assert loaded.fresh_runs("neither") == []


def test_a_run_of_another_method_is_not_fresh(tmp_path: Path) -> None:
    clock = METHOD.variant("clock")
    old = provenance_of(METHOD, clock) | {"method_version": 0}
    add_run(tmp_path, "box", "method", "clock", samples_of(METHOD, clock), old)
    path = tmp_path / "box" / "method" / "clock.csv"
    assert load_variant(path).fresh_runs(fingerprint(METHOD, clock)) == []


def test_shrinking_drops_the_oldest_extra_runs_of_the_machine(tmp_path: Path) -> None:
    for run in RUNS[1:4]:
        copy = store(tmp_path, run, variant="copy_a")
    for run in (RUNS[0], RUNS[4]):
        clock = store(tmp_path, run)
    folder = tmp_path / "box"
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    before = clock.stat().st_size

    shrink(tmp_path, "box", size)
    assert (len(runs_of(clock)), len(runs_of(copy))) == (2, 3)
    shrink(tmp_path, "box", size - before // 4)
    assert (runs_of(clock), runs_of(copy)) == ([RUNS[4]], RUNS[3:0:-1])
    shrink(tmp_path, "box", size - before)
    assert (runs_of(clock), runs_of(copy)) == ([RUNS[4]], RUNS[3:1:-1])
    for path in (clock, copy):
        loaded = load_variant(path)
        assert list(loaded.run_provenance()) == runs_of(path)
        assert loaded.provenance["samples_sha256"] == checksum(path)


def test_shrinking_keeps_a_run_that_others_are_compared_in(tmp_path: Path) -> None:
    # All were measured in RUNS[0]; then one of them again, and another after its code had changed.
    for variant in ("clock", "copy_a", "copy_b"):
        store(tmp_path, RUNS[0], variant=variant)
    store(tmp_path, RUNS[1], variant="copy_a")
    again = store(tmp_path, RUNS[2], variant="copy_a")
    edited = store(tmp_path, RUNS[2], variant="copy_b")
    edit_json(edited.with_suffix(".json"), lambda d: d["runs"][0].update(source_sha256="0" * 64))
    folder = tmp_path / "box"

    def drop_one() -> None:
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        shrink(tmp_path, "box", size - 1)

    drop_one()
    assert (runs_of(again), runs_of(edited)) == ([RUNS[2], RUNS[1], RUNS[0]], [RUNS[2]])
    drop_one()
    assert runs_of(again) == [RUNS[2], RUNS[0]]
    drop_one()
    assert runs_of(again) == [RUNS[2]]


def test_results_that_cannot_shrink_enough_are_an_error_that_drops_no_newest_run(
    tmp_path: Path,
) -> None:
    for run in RUNS[:2]:
        path = store(tmp_path, run)
    with pytest.raises(HotpathError, match=r"box: more than 10 bytes with one run of each"):
        shrink(tmp_path, "box", 10)
    assert runs_of(path) == [RUNS[1]]


def edit_json(path: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads(path.read_text())
    edit(document)
    path.write_text(json.dumps(document))


def damage_samples(path: Path) -> None:
    text = path.read_text()
    path.write_text(text.replace("e-06", "e-07", 1))
    assert path.read_text() != text


DAMAGE: list[tuple[Callable[[Path], object], str]] = [
    (damage_samples, "clock.csv: checksum differs from the one in clock.json"),
    (lambda path: path.write_text(path.read_text()[:-1]), "clock.csv: checksum differs"),
    (lambda path: path.write_text(path.read_text()[:-3]), "clock.csv: line 5: started_at"),
    (lambda path: path.write_text(""), "clock.csv: line 1: expected the columns"),
    (lambda path: path.with_suffix(".json").unlink(), "clock.csv: its provenance clock.json is"),
    (lambda path: path.with_suffix(".json").write_text("{"), "clock.json: not a provenance file"),
    (lambda path: path.with_suffix(".json").write_text("[]"), "clock.json: not a provenance file"),
    (
        lambda path: edit_json(path.with_suffix(".json"), lambda d: d.pop("samples_sha256")),
        "clock.json: not a provenance file: KeyError('samples_sha256')",
    ),
    (
        lambda path: edit_json(path.with_suffix(".json"), lambda d: d.pop("source_sha256")),
        "clock.json: not a provenance file: KeyError('source_sha256')",
    ),
    (
        lambda path: edit_json(path.with_suffix(".json"), lambda d: d.update(runs=None)),
        "clock.json: not a provenance file",
    ),
    (
        lambda path: edit_json(path.with_suffix(".json"), lambda d: d.update(runs=[{}])),
        "clock.json: not a provenance file: KeyError('run')",
    ),
]


@pytest.mark.parametrize(("damage", "fault"), DAMAGE)
def test_damaged_results_are_refused_by_name(
    tmp_path: Path, damage: Callable[[Path], object], fault: str
) -> None:
    path = store(tmp_path, RUN)
    damage(path)
    with pytest.raises((CorruptResults, MalformedSamples)) as caught:
        load_variant(path)
    assert str(caught.value).startswith(str(path.parent))
    assert fault in str(caught.value)


@pytest.mark.parametrize(("damage", "fault"), DAMAGE)
def test_only_the_machine_with_the_bad_file_is_left_out(
    tmp_path: Path, damage: Callable[[Path], object], fault: str
) -> None:
    studies = {"method": METHOD}
    for machine in ("a-box", "b-box", "c-box"):
        write_machine(tmp_path, machine, METHOD, rounds=2)
    whole = collect(tmp_path, studies)
    assert whole.refused == {}
    damage_machine = tmp_path / "b-box" / "method" / "clock.csv"
    damage(damage_machine)
    found = collect(tmp_path, studies)
    assert list(found.refused) == ["b-box"]
    assert fault.partition(": line")[0] in found.refused["b-box"]
    assert str(tmp_path) not in found.refused["b-box"]
    kept = whole.samples[whole.samples["machine"] != "b-box"]
    assert found.samples.equals(kept)
    assert list(found.machines) == ["a-box", "c-box"]
    assert {machine for machine, *_ in found.provenance} == {"a-box", "c-box"}


def test_a_machine_whose_description_is_garbled_is_left_out(tmp_path: Path) -> None:
    for machine in ("a-box", "b-box"):
        write_machine(tmp_path, machine, METHOD, rounds=2)
    (tmp_path / "a-box" / "machine.json").write_text("{")
    found = collect(tmp_path, {"method": METHOD})
    assert list(found.refused) == ["a-box"]
    assert set(found.samples["machine"]) == {"b-box"}


def test_results_of_code_that_is_gone_are_stale(tmp_path: Path) -> None:
    write_machine(tmp_path, "box", METHOD, rounds=2)
    folder = tmp_path / "box" / "method"
    for suffix in (".csv", ".json"):
        (folder / f"clock{suffix}").rename(folder / f"removed{suffix}")
    found = collect(tmp_path, {"method": METHOD}).samples
    # The rows still name the variant they were measured as; the file's name says whose they are.
    assert set(found[found["stale"]]["variant"]) == {"clock"}
    assert set(found[~found["stale"]]["variant"]) == set(METHOD.variant_names) - {"clock"}
    assert collect(tmp_path, {}).samples["stale"].all()


def test_what_is_published_or_beside_the_samples_is_no_machine_and_no_variant(
    tmp_path: Path,
) -> None:
    write_machine(tmp_path, "box", METHOD, variants=[METHOD.variant("clock")])
    write_machine(tmp_path, "published", METHOD)
    (tmp_path / "empty").mkdir()
    (tmp_path / "box" / "method" / "clock.telemetry.csv").write_text("time\n")
    assert machines(tmp_path) == ["box"]
    assert [path.name for path in variant_files(tmp_path, "box")] == ["clock.csv"]


def test_nothing_measured_is_an_empty_table_with_all_columns(tmp_path: Path) -> None:
    found = collect(tmp_path, {"method": METHOD})
    assert list(found.samples.columns) == ["machine", *COLUMNS, "stale"]
    assert chosen(found.samples).empty


COMMITTED = ROOT / "results"


@pytest.mark.parametrize("machine", machines(COMMITTED))
class TestCommitted:
    """What the repository itself holds."""

    def test_every_file_loads_and_says_its_own_name(self, machine: str) -> None:
        for path in variant_files(COMMITTED, machine):
            loaded = load_variant(path)
            names = {(sample.study, sample.variant) for sample in loaded.samples}
            assert names == {(path.parent.name, path.stem)}
            assert {sample.run for sample in loaded.samples} == set(loaded.run_provenance())

    def test_it_is_small(self, machine: str) -> None:
        files = [path for path in (COMMITTED / machine).rglob("*") if path.is_file()]
        assert sum(path.stat().st_size for path in files) <= MACHINE_LIMIT_BYTES

    def test_it_was_measured_from_clean_commits(self, machine: str) -> None:
        for path in variant_files(COMMITTED, machine):
            for run, entry in load_variant(path).run_provenance().items():
                assert entry["dirty"] is False, f"{path}: {run}"
                assert len(entry["commit"]) == 40, f"{path}: {run}"

    def test_every_value_was_verified(self, machine: str) -> None:
        for path in variant_files(COMMITTED, machine):
            for sample in load_variant(path).samples:
                assert sample.verified == (sample.status == "ok"), f"{path}: {sample}"
