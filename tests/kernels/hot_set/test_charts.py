"""Charts of the study, from made-up cells."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.site.charts.writing import write_chart
from kernels.hot_set.charts import charts
from kernels.hot_set.policy_chart import policy_table
from tests.kernels.hot_set.measured import BLOCK, GIVEN, facts_of, simulated, timed, usual_case

FETCHED = {"lru": 2e6, "clock": 2.1e6, "random": 2.5e6, "belady": 1e6}


def test_both_charts_can_be_drawn(tmp_path: Path) -> None:
    times = {(BLOCK, 1, 410): 1e-5, (BLOCK, 1, 2048): 1e-4, (GIVEN, 1, 2048): 9e-5}
    rows = [*timed(times), *simulated("kept_0.9", FETCHED)]
    rows.append((BLOCK, usual_case(1, 410, layers=60), "host_time", 6e-4))
    for name, chart in charts(facts_of(tmp_path, rows)).items():
        assert chart is not None, name
        assert len(chart.table) == 3
        write_chart(chart, tmp_path / "out", name)


def test_bars_say_bytes_and_time_beyond_the_optimum(tmp_path: Path) -> None:
    times = {(BLOCK, 1, 410): 0.0, (BLOCK, 1, 2048): 1638 * 656 / 50e9}
    facts = facts_of(tmp_path, [*simulated("kept_0.9", FETCHED), *timed(times)])
    table = policy_table(facts).set_index("policy")
    assert table["beyond"].to_dict() == pytest.approx({"LRU": 1, "CLOCK": 1.1, "random": 1.5})
    assert table["label"].to_dict() == {
        "LRU": "100 %, 20.00 µs",
        "CLOCK": "110 %, 22.00 µs",
        "random": "150 %, 30.00 µs",
    }
    without_times = policy_table(facts_of(tmp_path, simulated("kept_0.9", FETCHED)))
    assert list(without_times["label"]) == ["100 %", "110 %", "150 %"]


def test_an_incomplete_comparison_is_not_drawn(tmp_path: Path) -> None:
    some = {policy: size for policy, size in FETCHED.items() if policy != "belady"}
    assert charts(facts_of(tmp_path, simulated("kept_0.9", some))) == {
        "misses": None,
        "policies": None,
    }


def test_a_variant_that_is_measured_by_no_time_is_not_called_missing(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, simulated("kept_0.9", FETCHED))
    lru = facts.points[facts.points["variant"] == "policy_lru"]
    assert "topk=2048,slots=4096,trace=kept_0.9" not in set(lru["case"])
    assert set(lru["state"]) == {"not measured"}, "other cases are missing"
