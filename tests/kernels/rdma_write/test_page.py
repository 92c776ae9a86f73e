"""Charts, tables and sentences on the page of the RDMA writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analysis import ROOT
from analysis.results.store.published import load_published
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Case, Variant
from analysis.toolchain.derived import derive_tables, read_derived
from analysis.toolchain.libfabric import Libfabric
from tests.kernels.rdma_write.sessions import STUDY
from tests.roots import drawn_charts, make_inputs, settled
from tests.synthetic import RUN, Sample, add_run, provenance_of, write_machine

PART_NS = {
    "post_time": 60, "refused_time": 0, "poll_time": 10, "empty_time": 5, "own_time": 20,
    "rest_time": 5,
}  # fmt: skip
PROFILED = ("threads_shared_atomic", "pooled_contexts")


def samples_of(variant: Variant, case: Case, number: int) -> list[Sample]:
    """One round: 110 ns per write for pooled_contexts, 220 for all others."""
    wobble = 1 + number / 1000
    times = 110 if variant.name == "pooled_contexts" else 220
    values = {"op_time": times * 1e-9 * wobble}
    if variant.name in PROFILED:
        values |= {name: ns * 1e-9 for name, ns in PART_NS.items()} | {"without_own": 1.25 * wobble}
    first = Sample(
        study=STUDY.name, variant=variant.name, case=case.id, metric="", unit="s", value=None,
        run=RUN, round=number, sample=0, verified=1, status="ok", reason="", throttle="",
        sm_mhz=None, started_at=RUN,
    )  # fmt: skip
    return [
        replace(first, metric=name, unit=STUDY.metrics[name].unit, value=value)
        for name, value in values.items()
    ]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> StudyFacts:
    root = tmp_path_factory.mktemp("rdma_write")
    write_machine(root / "results", "box", STUDY, variants=[])
    for variant in STUDY.variants:
        case = next(case for case in variant.cases if case.id == STUDY.headline)
        samples = [sample for number in range(8) for sample in samples_of(variant, case, number)]
        provenance = provenance_of(STUDY, variant)
        add_run(root / "results", "box", STUDY.name, variant.name, samples, provenance)
    return StudyFacts(settled(make_inputs(root, {STUDY.name: STUDY})), STUDY)


def test_parts_of_a_write_are_stacked(measured: StudyFacts, tmp_path: Path) -> None:
    chart = drawn_charts(measured)["parts"]
    table = chart.table
    assert set(table["variant"]) == set(PROFILED)
    pooled = table[table["variant"] == "pooled_contexts"].set_index("part")
    assert pooled["ns"].tolist() == pytest.approx(list(PART_NS.values()))
    assert pooled["share"]["our code"] == pytest.approx(0.2)


def test_chart_of_counters_has_the_offsets_of_the_compiler(
    measured: StudyFacts, tmp_path: Path, libfabric: Libfabric
) -> None:
    assert derive_tables(STUDY, tmp_path / "modules", tmp_path) == {}
    derived = {STUDY.name: read_derived(tmp_path)}
    with_tables = StudyFacts(replace(measured.inputs, derived=derived), STUDY)
    table = drawn_charts(with_tables)["lines"].table
    fields = {name: rows.set_index("field")["offset"] for name, rows in table.groupby("variant")}
    assert set(fields["threads_shared_atomic"] // 64) == {0}
    array, padded = fields["sharded_array"], fields["sharded_padded"]
    assert array["posted[7]"] - array["posted[0]"] == 7 * 8
    assert array["finished_devices"] == 2 * 64
    assert len(set(padded // 64)) == len(padded) == 17


def test_no_chart_of_counters_without_a_compiler(
    measured: StudyFacts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", str(tmp_path / "no-compiler"))
    absent = derive_tables(STUDY, tmp_path / "modules", tmp_path)
    assert "no-compiler: cannot be run" in absent["counter_fields"]
    derived = {STUDY.name: read_derived(tmp_path)}
    facts = StudyFacts(replace(measured.inputs, derived=derived), STUDY)
    assert "lines" not in drawn_charts(facts)


def test_published_rates_are_read_as_times_per_write() -> None:
    rows = load_published(ROOT / "results", STUDY).set_index("variant")["seconds"]
    assert rows["single_thread"] / rows["threads_pinned"] == pytest.approx(2.361 / 0.560)
    assert rows["sharded_array"] == pytest.approx(1 / 2.904e6)
