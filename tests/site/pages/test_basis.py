"""Made-up machines whose runs allow no interval or no headline, and the words of the pages."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from analysis.base.quantities import percent_interval
from analysis.site.facts.journeys import journey_of
from analysis.site.facts.rows import ParameterRow
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages import home
from analysis.site.pages.fragments import Place
from analysis.site.pages.home import cards, top_findings
from analysis.site.pages.ledger import claims_of
from analysis.site.pages.sentences import NOTHING, fastest_phrase, step_sentence
from analysis.site.pages.study_pages import lead
from analysis.site.pages.variants import sections
from analysis.study import discover
from tests.roots import drawn_charts, make_inputs, make_root, without_data
from tests.synthetic import at_rates, write_machine

NOT_A_HEADLINE = "fewer than 3 runs or 2 hosts"
HOSTS = ("2026-01-02T03:04:05Z", "2026-01-03T03:04:05Z", "2026-01-04T03:04:05Z")
"""Runs, each on another host."""


def copying(root: Path, machines: Mapping[str, Mapping[str, Sequence[float]]]) -> StudyFacts:
    """Facts of machines whose runs have these rates in GB/s by variant, oldest first."""
    study = discover(make_root(root))["copy"]
    for machine, rates in machines.items():
        for place, run in enumerate(HOSTS):
            of_run = {name: of[place] for name, of in rates.items() if place < len(of)}
            write_machine(
                root / "results",
                machine,
                study,
                variants=[study.variant(name) for name in of_run],
                run=run,
                seconds=at_rates(of_run),
                noise=1e-4,
                grid="smoke",
            )
    return StudyFacts(make_inputs(root), study)


def test_two_runs_are_shown_as_both_and_are_no_headline(tmp_path: Path) -> None:
    rates = {"bytewise": [1.0, 1.0], "vectors": [1.2, 1.4]}
    facts = copying(tmp_path, {"box": rates})
    page = without_data(lead(facts))
    assert "<p>In 2 runs on 2 hosts: Vectors are 1.30× as fast as bytes." in page
    assert "Runs: 1.20×, 1.40× on box (2 runs, 2 hosts)" in page
    home = top_findings([facts], str)
    assert home == NOTHING
    assert journey_of(facts) is None and NOT_A_HEADLINE in cards([facts], str)
    ledger = claims_of(facts, Place(tmp_path / "site", ""), ["vectors"])
    assert "holds</span> on box in 2 runs on 2 hosts: 1.30× (runs: 1.20×, 1.40×; 2 runs" in ledger
    vectors = facts.study.variant("vectors")
    sentence = step_sentence(facts, "box", vectors)
    faster = "this step is faster than `bytewise` in both runs (too few for a verdict): 1.30× its"
    assert sentence.startswith(f"On box (2 runs, 2 hosts) {faster} speed (runs: 1.20×, 1.40×)")
    assert not re.search(r"[\d.]+ to [\d.]+", page + home + ledger + sentence)
    points = facts.points
    drawn = points[(points["variant"] == "vectors") & (points["state"] == "measured")]
    assert drawn["rate_low"].isna().all() and (drawn["by_run"].str.count(r"\|") == 1).all()
    assert set(drawn["label"]) == {"1.29 (2 runs)"}
    assert "of_run" in json.dumps(drawn_charts(facts)["steps"].drawing.to_dict(validate=False))


def test_runs_and_hosts_stand_beside_every_machine(tmp_path: Path) -> None:
    few, enough = (
        {"bytewise": [1.0], "vectors": [1.5]},
        {"bytewise": [1.0] * 3, "vectors": [1.5] * 3},
    )
    facts = copying(tmp_path, {"box": enough, "other-box": few})
    page = lead(facts)
    assert "on box (3 runs, 3 hosts), also on other-box (one run)" in page
    assert "on box (3 runs, 3 hosts), threshold" in top_findings([facts], str)
    ledger = claims_of(facts, Place(tmp_path / "site", ""), ["vectors"])
    assert "on box: 1.50× (1.43 to 1.58; 3 runs, 3 hosts)" in ledger
    assert "other-box in 1 run on 1 host: 1.50× (one run)" in ledger
    shown = sections(facts, Place(tmp_path / "site", ""), "step")
    rows = re.findall(r"<tr>(?:(?!<tr>).)*</tr>", shown, re.DOTALL)
    (row,) = (row for row in rows if "#other-box-copy-vectors" in row)
    assert "one run" in row and not re.search(r"[\d.]+ to [\d.]+", row)


def test_machines_that_decide_alike_are_named_together(tmp_path: Path) -> None:
    enough = {"bytewise": [1.0] * 3, "vectors": [1.5] * 3}
    facts = copying(tmp_path, {"box": enough, "a-box": enough})
    figure = "(figure of a-box: 3 runs, 3 hosts)"
    assert f"on a-box and box {figure}" in lead(facts)
    assert f"on a-box and box {figure}" in top_findings([facts], str)


def test_no_interval_exceeds_the_limit(tmp_path: Path) -> None:
    rates = {"bytewise": [1.0] * 3, "vectors": [6.0, 7.5, 9.0], "ceiling_engine": [10.0] * 3}
    facts = copying(tmp_path, {"box": rates})
    points, journey = facts.points, journey_of(facts)
    assert journey is not None
    assert home._mark(facts, journey.last, is_end=True).high == pytest.approx(10e9, rel=1e-2)
    drawn = points[(points["variant"] == "vectors") & (points["state"] == "measured")]
    assert (drawn["rate_low"] < 6).all()
    assert drawn["rate_high"].to_numpy() == pytest.approx(10.0, rel=1e-2)
    assert set(drawn["note"]) == {"interval ends at the ceiling's rate"}
    rates["vectors"] = [10.2, 11.7, 13.2]
    points = copying(tmp_path / "beyond", {"box": rates}).points
    drawn = points[(points["variant"] == "vectors") & (points["state"] == "measured")]
    assert drawn["rate_high"].to_numpy() == pytest.approx(drawn["rate"].to_numpy())
    beyond = "interval ends at the figure, which exceeds the ceiling's rate"
    assert set(drawn["note"]) == {beyond}
    assert percent_interval(0.85, 0.57, 1.32) == "57 % to 100 %"
    assert percent_interval(1.02, 0.98, 1.32) == "98 % to 102 %"


def test_runs_that_disagree_are_no_measurable_equality(tmp_path: Path) -> None:
    rates = {"bytewise": [1.0] * 3, "vectors": [0.8, 1.0, 1.4]}
    facts = copying(tmp_path, {"box": rates})
    sentence = step_sentence(facts, "box", facts.study.variant("vectors"))
    assert "either this step or `bytewise` may be faster in another run: 1.000×" in sentence
    assert "no measurable difference" not in sentence


def test_interval_of_a_ceiling_ends_at_the_rate_of_the_link(tmp_path: Path) -> None:
    facts = copying(tmp_path, {"box": {"ceiling_engine": [9.0, 10.0, 11.0]}})
    described = {**facts.inputs.machines["box"], "sms": 4}
    rate = ParameterRow("box", "link_rate", 10.5e9, "B/s", math.nan, math.nan, 24, 1)
    inputs = replace(facts.inputs, machines={"box": described})
    with_rate = inputs.with_tables(model_parameters=pd.DataFrame([rate]))
    ceiling = replace(facts.study.variant("ceiling_engine"), link={"reads": "copy_engine"})
    points = StudyFacts(with_rate, replace(facts.study, variants=(ceiling,))).points
    drawn = points[(points["variant"] == "ceiling_engine") & (points["state"] == "measured")]
    assert drawn["rate_high"].to_numpy() == pytest.approx(10.5)
    assert set(drawn["note"]) == {"interval ends at the link's rate"}


def test_one_run_gives_a_direction_and_no_verdict(tmp_path: Path) -> None:
    facts = copying(tmp_path, {"box": {"bytewise": [1.0], "vectors": [2.0], "warps": [2.0]}})
    said = step_sentence(facts, "box", facts.study.variant("vectors"))
    assert "is faster than `bytewise` in the only run (too few for a verdict): 2.00× its" in said
    said = step_sentence(facts, "box", facts.study.variant("warps"))
    assert "no verdict on this step and `vectors`, since the runs are too few for a verdict" in said
    fastest = facts.ranking.fastest("box")
    assert fastest is not None
    phrase = fastest_phrase(facts, "box", fastest)
    assert phrase.endswith("(without a verdict on the other steps: only one run)")
