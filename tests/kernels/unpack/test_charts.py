"""The unpack study's charts: parts of a call, first and last step, cost of misalignment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.measure.profile.session import normalised
from analysis.results.store.records import Event
from analysis.site.charts.parts import part_rows
from analysis.site.charts.writing import write_chart
from analysis.site.facts.study_facts import StudyFacts
from tests.repository import STUDIES
from tests.roots import drawn_charts, make_inputs
from tests.synthetic import add_run, provenance_of, samples_of, set_capture, write_machine


def test_charts_show_parts_first_and_last_and_alignment(tmp_path: Path) -> None:
    study = STUDIES["unpack"]
    results = tmp_path / "results"
    write_machine(results, "box", study, variants=[])
    timelines: list[Event] = []
    parts = [metric.name for metric in study.metrics.values() if metric.part_of]
    for variant in study.variants:
        samples = samples_of(study, variant)
        if variant.role == "step":
            samples += [
                replace(sample, metric=name, value=(number + 1) * 1e-6)
                for sample in samples
                if sample.metric == "host_time"
                for number, name in enumerate(parts)
            ]
        add_run(results, "box", study.name, variant.name, samples, provenance_of(study, variant))
        events: list[tuple[int, int, int | None, str, str, int | None, int]] = [
            (1, 9_001, None, "host call", "cudaLaunchKernel", None, 1),
            (2_001, 3_001, 7, "memcpy", "memcpy", 4096, 1),
            (4_001, 8_001, 7, "kernel", "_Z4copyv", None, 1),
        ]
        timelines += normalised(variant.name, events)
    captured = {name: dict[str, str]() for name in study.variant_names}
    set_capture(results, "box", study, "timeline", captured, timelines)
    facts = StudyFacts(make_inputs(tmp_path, {"unpack": study}), study)
    charts: dict[str, Any] = drawn_charts(facts)
    for name, chart in charts.items():
        write_chart(chart, tmp_path / "out", name)
    tables = {
        name: charts[name].table
        for name in ("parts", "part_shares", "first_and_last", "fragments", "alignment")
    }
    summary = facts.inputs.tables["summary"]
    of_nothing = summary.assign(median=summary["median"].where(~summary["metric"].isin(parts), 0.0))
    assert part_rows(StudyFacts(facts.inputs.with_tables(summary=of_nothing), study)).empty
    steps = {step.name for step in study.with_role("step")}
    assert set(tables["parts"]["variant"]) == set(tables["part_shares"]["variant"]) == steps
    last_step = tables["parts"][tables["parts"]["variant"] == "s4_batched"]
    # Each part is that of the headline's eight chunks.
    assert last_step["us"].tolist() == pytest.approx([(n + 1) / 8 for n in range(8)])
    assert last_step["share"].sum() == pytest.approx(1)
    ends = {"s0_everything_per_chunk", "s4_batched"}
    assert set(tables["first_and_last"]["variant"]) == ends
    assert set(tables["first_and_last"]["lane"]) == {
        "first step, host",
        "first step, GPU",
        "last step, host",
        "last step, GPU",
    }
    fragments = tables["fragments"]
    assert set(fragments["variant"]) == {"s4_batched"}
    assert sorted(set(fragments["fragment"])) == sorted(
        ["64 B", "256 B", "1,024 B", "4,093 B", "4,096 B", "65,536 B"]
    )
    # All chunks of the operation together.
    assert fragments["us"].tolist() == pytest.approx([float(n + 1) for n in range(8)] * 6)
    measured = set(zip(tables["alignment"]["variant"], tables["alignment"]["source"], strict=True))
    assert {variant for variant, _ in measured} == {
        "s4_batched",
        "descriptors_in_place",
        "shifted_in_registers",
        "one_copy",
    }
    assert len(measured) == 7
