"""The charts of this study, from results as a machine leaves them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from analysis.results.model.fit import Fit
from analysis.results.tables.links import parameter_table
from analysis.site.charts.writing import write_chart
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Case, Variant
from kernels.pool_gather.charts import NEIGHBOURS, WAYS, charts, packing_cores, run_rows
from tests.charted import assert_page_is_drawn
from tests.kernels.pool_gather.fake import POOL
from tests.results.model.test_translation import KNOWN
from tests.roots import drawn_charts, make_inputs
from tests.synthetic import add_run, provenance_of, samples_of, write_machine

OWN = {"pool_sizes", "layouts", "ways", "runs", "cores", "hosts", "neighbours"}
LOOKS = [{"spin_s": 6e-3, "copy_bytes_per_s": rate} for rate in [1e10] * 4 + [2e10] * 5]


def plausible(variant: Variant, case: Case, metric: str) -> float:
    """The rate of the link, or less where rows of a large pool are alone."""
    run = run_rows(str(case["layout"])) or 64
    rate = 50e9 if case.number("pool_mib") < 512 else 50e9 * run / (run + 2)
    return 5e-6 + case.payload_bytes / rate


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> StudyFacts:
    root = tmp_path_factory.mktemp("charts")
    results = root / "results"
    write_machine(results, "box", POOL, variants=[], noise=0.001, seconds=plausible, grid="default")
    for variant in POOL.variants:
        samples = samples_of(POOL, variant, noise=0.001, seconds=plausible)
        beside = [one for one in samples if "beside=" in one.case and one.metric == "host_time"]
        alone = [one for one in samples if "beside=" not in one.case]
        alone += [replace(one, metric="neighbour_slowdown", unit="1", value=1.5) for one in beside]
        provenance = provenance_of(POOL, variant) | {"conditions": LOOKS}
        add_run(results, "box", POOL.name, variant.name, alone, provenance)
    inputs = make_inputs(root, {"pool_gather": POOL})
    described = {"box": {**inputs.machines["box"], "cores": 16}}
    return StudyFacts(replace(inputs, machines=described), POOL)


def test_every_chart_of_the_page_is_there(facts: StudyFacts, tmp_path: Path) -> None:
    needing_more = {"model", "timeline"}  # a calibration, and a capture
    assert_page_is_drawn(facts, OWN - {"pool_sizes"}, tmp_path, but=needing_more)
    write_chart(drawn_charts(facts)["pool_sizes"], tmp_path, "pool_sizes")


def test_the_charts_draw_what_they_say(facts: StudyFacts, tmp_path: Path) -> None:
    made = drawn_charts(facts)
    tables = {name: made[name].table for name in OWN}
    layouts, ways, runs = (tables[name] for name in ("layouts", "ways", "runs"))
    assert set(tables["neighbours"]["beside"]) == {*NEIGHBOURS.values()}
    assert set(tables["neighbours"]["slowdown"]) == {1.5}
    assert len(tables["neighbours"]) > 0
    assert set(layouts["variant"]) == {"loads_first"}
    assert set(layouts["case_layout"]) == {"scattered", "pages_64", "contiguous"}
    small = ways[ways["case_pool_mib"] == 188]
    assert set(small.loc[small["case_rows"] == 262144, "case_layout"]) == {"distinct"}
    assert set(ways["variant"]) == set(WAYS) <= set(POOL.variant_names)
    packed = ways[ways["variant"] == "packed_by_cpu"].sort_values("case_pool_mib")
    assert list(packed["case_pool_mib"].unique()) == [188, 16384, 40960]
    assert set(packed["pool"]) == {"188 MiB", "16 GiB", "40 GiB"}
    assert set(tables["pool_sizes"]["line"]) == {"CPU and SMs", "four together", "scattered"}
    cores = tables["cores"]
    assert set(cores["variant"]) == {"packed_by_2", "packed_by_4", "packed_by_8", "packed_by_cpu"}
    assert set(cores["cores"]) == {2, 4, 8, 14}
    hosts = tables["hosts"]
    shown = {"loads_first", "packed_by_cpu", "both_engines", "ceiling_copy_engine"}
    assert set(hosts["variant"]) == shown
    packed = hosts[hosts["variant"] == "packed_by_cpu"].sort_values("round")
    assert list(packed["copied"]) == [10] * 4 + [20] * 4
    assert list(packed["rate"]) == pytest.approx([50 / 3] * 8, rel=0.05)
    assert list(dict.fromkeys(cores["pool"])) == ["188 MiB", "40 GiB"]
    assert sorted(runs["run"]) == [1, 2, 4, 8, 16, 32, 64]
    assert set(runs["case_pool_mib"]) == {40960}
    assert runs.sort_values("run")["rate"].is_monotonic_increasing


def test_the_model_is_drawn_beside_what_it_predicts(facts: StudyFacts, tmp_path: Path) -> None:
    known = Fit(KNOWN, KNOWN, KNOWN, *[(1,) * len(KNOWN.values())] * 2)
    inputs = facts.inputs.with_tables(model_parameters=parameter_table({"box": known}))
    made = charts(StudyFacts(inputs, POOL))
    tables = {}
    for name in ("layouts", "runs"):
        chart = made[name]
        assert chart is not None
        table = chart.table
        tables[name] = table[table["state"] == "predicted"]
    layouts = tables["layouts"]
    large = layouts[(layouts["case_layout"] == "scattered") & (layouts["case_rows"] == 262144)]
    assert large["pool_gib"].nunique() > 2 * len({1, 4, 16, 40})
    assert large.sort_values("pool_gib")["rate"].is_monotonic_decreasing
    assert set(layouts["case_layout"]) == {"scattered", "pages_64", "contiguous"}
    runs = tables["runs"].sort_values("run")
    assert {3, 6} < set(runs["run"]) and runs["rate"].is_monotonic_increasing


def test_without_a_model_the_points_stay_numbers(facts: StudyFacts) -> None:
    """An empty table joined to theirs would turn them into text, which no axis has."""
    assert facts.inputs.tables["model_parameters"].empty
    chart = charts(facts)["layouts"]
    assert chart is not None
    assert pd.api.types.is_numeric_dtype(chart.table["rate"])


def test_what_is_not_measured_draws_no_chart(facts: StudyFacts) -> None:
    inputs = facts.inputs
    nothing = inputs.with_tables(
        summary=inputs.tables["summary"][:0], rounds=inputs.tables["rounds"][:0]
    )
    assert set(charts(StudyFacts(nothing, POOL)).values()) == {None}


@pytest.mark.parametrize(
    ("variant", "cores", "packing"),
    [
        ("packed_by_cpu", 16, 14),
        ("packed_by_cpu", 2, 1),
        ("packed_by_8", 16, 8),
        ("packed_by_8", 4, 3),
    ],
)
def test_seven_of_eight_cores_pack_or_as_many_as_the_variant_allows(
    variant: str, cores: int, packing: int
) -> None:
    assert packing_cores(POOL.variant(variant), cores) == packing
    assert math.isnan(packing_cores(POOL.variant(variant), None))


@pytest.mark.parametrize(
    ("layout", "rows"), [("scattered", 1), ("pages_16", 16), ("contiguous", None)]
)
def test_a_layout_says_how_many_rows_lie_together(layout: str, rows: int | None) -> None:
    assert run_rows(layout) == rows
