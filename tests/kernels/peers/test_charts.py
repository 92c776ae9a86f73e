"""The charts of this study and its model of NVLink, from results as a machine leaves them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Case, Variant
from analysis.toolchain.modules import load_python
from tests.charted import assert_page_is_drawn, charted
from tests.kernels.peers.fake import PEERS

CHARTS = load_python(PEERS, "charts")
NVLINK = load_python(PEERS, "nvlink")
TIER = load_python(PEERS, "tier")
OWN = {"gains", "sizes", "pools", "links", "nvlink", "tier"}
TRUE = NVLINK.NvLink(400e9, 16.0, 4e-6)


def plausible(variant: Variant, case: Case, metric: str) -> float:
    """Times of pulled rows by the model of one NVLink, of all others by a rate per GPU."""
    size, rows = case.number("row_bytes"), case.number("rows")
    if variant.name in ("pulled", "pulled_again"):
        return float(TRUE.seconds(np.array([NVLINK.work_of(size, rows)]))[0])
    return 8e-6 + case.payload_bytes / (variant.gpus * 25e9)


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> StudyFacts:
    return charted(PEERS, tmp_path_factory.mktemp("charts"), plausible, "default")


def test_every_chart_of_the_page_is_there(facts: StudyFacts, tmp_path: Path) -> None:
    assert_page_is_drawn(facts, OWN, tmp_path)


def test_what_is_not_measured_draws_no_chart(facts: StudyFacts) -> None:
    nothing = facts.inputs.with_tables(summary=facts.inputs.tables["summary"][:0])
    assert set(CHARTS.charts(StudyFacts(nothing, PEERS)).values()) == {None}


def test_gains_are_over_one_link_in_the_same_case(facts: StudyFacts) -> None:
    points = facts.points[facts.points["metric"] == "gpu_time"]
    rows = CHARTS.gains(points[points["case_pool_mib"] == 188])
    assert "from_host" not in set(rows["variant"])
    many = rows[(rows["variant"] == "four_links") & (rows["case"] == PEERS.headline)]
    assert many["times"].tolist() == pytest.approx([2], rel=0.02)


def test_the_model_finds_the_link_and_predicts_what_it_has_not_seen(facts: StudyFacts) -> None:
    points = facts.points[facts.points["metric"] == "gpu_time"]
    small = points[points["case_pool_mib"] == 188]
    (model,) = CHARTS.fits(small).values()
    assert model.rate == pytest.approx(TRUE.rate, rel=0.03)
    assert model.header_bytes == pytest.approx(TRUE.header_bytes, abs=3)
    assert model.start_up == pytest.approx(TRUE.start_up, rel=0.03)
    rows = CHARTS.residuals(points, {"box": model})
    held = rows[rows["use"] == "held back"]
    assert len(held) > 10
    assert (held["residual"].abs() < 0.05).all()
    assert held["said"].iloc[0].endswith(f"{len(held)} of {len(held)} held back within 5%")


def test_too_few_cases_have_no_model() -> None:
    work = np.array([NVLINK.work_of(656, rows) for rows in (512, 2048, 8192)])
    assert NVLINK.fit(work, TRUE.seconds(work)) is None


def test_a_tier_lies_between_the_host_and_the_peer() -> None:
    rates = {"pulled": 400.0, "from_host": 50.0}
    points = pd.DataFrame(
        [
            {"machine": "box", "case": "a", "variant": name, "rate": rate}
            for name, rate in rates.items()
        ]
    )
    rows = TIER.tier(points).set_index(["way", "share"])["rate"]
    assert rows[TIER.AFTER, 0] == rows[TIER.AT_ONCE, 0] == 50
    assert rows[TIER.AFTER, 1] == rows[TIER.AT_ONCE, 1] == 400
    assert rows[TIER.AFTER, 0.5] == pytest.approx(800 / 9)
    assert rows[TIER.AT_ONCE, 0.5] == 100


def test_charts_name_variants_that_there_are() -> None:
    ways = [name for names in CHARTS.WAYS.values() for name in names if name]
    assert {*ways, *CHARTS.SOURCES, *CHARTS.OVER_POOLS} <= set(PEERS.variant_names)
    for way in CHARTS.WAYS.values():
        assert all(PEERS.variant(name).gpus >= gpus for gpus, name in enumerate(way, 1) if name)
