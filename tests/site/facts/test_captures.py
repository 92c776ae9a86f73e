"""Captures: their status, their counters, and the names of their kernels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.base.errors import HotpathError
from analysis.base.records import write_records
from analysis.results.store.records import Counter
from analysis.site.facts.captures import kernel_name, read_counters
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import discover
from tests.captured import captured_root
from tests.roots import make_inputs, make_root
from tests.synthetic import write_machine


def test_counters_of_several_kernels_are_summed_if_possible(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    rows = [
        Counter("one", "n=1", kernel, metric, "", value)
        for kernel, metric, value in (
            ("short", "gpu__time_duration.sum", 10.0),
            ("short", "launch__registers_per_thread", 99.0),
            ("long", "gpu__time_duration.sum", 30.0),
            ("long", "launch__registers_per_thread", 16.0),
        )
    ]
    others = [replace(row, variant="other", value=row.value + 1) for row in rows]
    write_records(path, Counter, [*rows, *others])
    assert read_counters(path, "one") == {
        "gpu__time_duration.sum": 40.0,
        "launch__registers_per_thread": 16.0,
    }
    write_records(path, Counter, [])
    assert read_counters(path, "one") == {}
    for broken in (
        "",
        "case,kernel\nn=1,k\n",
        "variant,case,kernel,metric,unit,value\na,a,b,c,d,high\n",
    ):
        path.write_text(broken)
        with pytest.raises(HotpathError, match=r"v\.csv: "):
            read_counters(path, "one")


NAMES = {
    "_Z11gather_rows6Gather": "gather_rows",
    "_Z9copy_rowsILi4ELi2EEv4Rows": "copy_rows<4, 2>",
    "_Z6unpackI7ByWidthLj2048EEv10ParametersIXT0_EE": "unpack<ByWidth, 2048>",
    "_Z4fillIfEvPT_": "fill<float>",
    "_Z10copy_tilesIhEv5Tiles": "copy_tiles",
    "_ZN43_GLOBAL__N__18634171_10_checked_cu_c73afa0211find_faultsE5Batch": "find_faults",
    (
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EE"
        "EEviT0_T1_"
    ): "vectorized_elementwise_kernel",
    "_Z4holdIN12_GLOBAL__N_16Shift8EEvT_": "hold",
    "_Z7unpack8ILj8ELm3EEvv": "unpack8<8, 3>",
    "cudaLaunchKernel": "cudaLaunchKernel",
    "_Z": "_Z",
}
"""Names of kernels by their symbols."""


@pytest.mark.parametrize(("symbol", "name"), NAMES.items())
def test_kernels_have_readable_names(symbol: str, name: str) -> None:
    assert kernel_name(symbol) == name


def test_variant_without_the_profiled_case_is_reported(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    study = discover(root)["strides"]
    write_machine(root / "results", "box", study)
    facts = StudyFacts(make_inputs(root), study)
    other = next(v for v in study.variants if study.headline not in {c.id for c in v.cases})
    assert "lacks the profiled case" in facts.captures.find("box", other, "timeline").reason


def test_a_capture_the_study_does_not_ask_for_is_said(tmp_path: Path) -> None:
    root = captured_root(tmp_path)
    facts = StudyFacts(make_inputs(root), discover(root)["copy"])
    unwanted = replace(facts.study.variant("looping"), captures=("timeline",))
    assert facts.captures.find("box", unwanted, "counters").reason == "the study requests none"
