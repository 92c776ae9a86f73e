"""The home page: one card per journey, findings, and both with few results."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.site.facts.findings import findings
from analysis.site.facts.journeys import journey_of
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages import home
from analysis.site.pages.home import MAX_FINDINGS, cards, other_studies, top_findings
from analysis.study import discover
from analysis.study.claims.claim import Bearing
from tests.roots import make_inputs, make_root, rows_without_value, settled, without_data
from tests.synthetic import add_run, at_rates, provenance_of, write_machine

SPEEDS = {
    "bytewise": 1.25,
    "vectors": 2.5,
    "warps": 7.5,
    "in_flight": 6.25,
    "ceiling_engine": 12.25,
}
"""GB/s."""


def facts_of(root: Path) -> StudyFacts:
    return StudyFacts(settled(make_inputs(root)), discover(root)["copy"])


def measure(
    root: Path, *names: str, machine: str = "box", speeds: dict[str, float] = SPEEDS
) -> None:
    study = discover(root)["copy"]
    variants = [study.variant(name) for name in names or speeds]
    write_machine(
        root / "results",
        machine,
        study,
        variants=variants,
        seconds=at_rates(speeds),
        noise=1e-4,
        grid="smoke",
    )


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> StudyFacts:
    root = make_root(tmp_path_factory.mktemp("home"))
    measure(root)
    return facts_of(root)


def card(facts: StudyFacts) -> str:
    return without_data(str(cards([facts], lambda name: f"studies/{name}/")))


def test_card_shows_first_and_fastest_step_their_share_and_their_machine(
    measured: StudyFacts,
) -> None:
    html = card(measured)
    assert '<h3><a href="studies/copy/">Copying rows</a></h3>' in html
    assert "<strong>1.25 GB/s</strong> → <strong>7.50 GB/s</strong>" in html
    assert ">6.00×</span>" in html
    assert "10 % → 61 % of the limit. box, 3 runs, 3 hosts" in html
    drawn = [float(height) for height in re.findall(r'<rect [^>]*height="([\d.]+)"', html)]
    assert drawn == pytest.approx([drawn[0] * speed for speed in (1, 2, 6, 5)], rel=0.02)
    assert "bytewise: 1.25 GB/s; vectors: 2.50 GB/s" in html


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ((0.1, 0.61), "10 % → 61 % of the limit"),
        ((0.017, 1.009), "1.7 % of the limit → at the limit"),
        ((0.9951, 1.05), "at the limit"),
        ((0.5, 0.994), "50 % → 99 % of the limit"),
        ((0.5, 1.3), "50 % → 130 % of the limit"),
        ((0.5,), "50 % of the limit"),
    ],
)
def test_share_within_one_percent_of_the_limit_is_at_the_limit(
    shares: tuple[float, ...], expected: str
) -> None:
    assert home._limit_shares(shares, "the limit") == expected


def test_a_finding_is_a_sentence_with_its_basis_and_a_link_to_the_claim(
    measured: StudyFacts,
) -> None:
    html = without_data(str(top_findings([measured], lambda name: f"studies/{name}/")))
    assert "<strong>Vectors are 2.00× as fast as bytes.</strong>" in html
    assert "Belief" not in html and html.count("<li>") == 1
    assert 'href="studies/copy/#copy-vectors"' in html
    assert "on box, threshold chosen after these runs." in html
    claims = measured.inputs.tables["claims"].assign(bound="before", judging=3)
    foreseen = StudyFacts(measured.inputs.with_tables(claims=claims), measured.study)
    assert "on box. " in top_findings([foreseen], str)
    few = StudyFacts(measured.inputs.with_tables(claims=claims.assign(runs=6)), measured.study)
    said = ", verdict from the 3 of 6 runs made after we fixed the threshold. "
    assert f"on box{said}" in top_findings([few], str)


def test_each_study_has_one_finding_and_those_on_design_come_first(measured: StudyFacts) -> None:
    def about(name: str, *bears_on: Bearing) -> StudyFacts:
        claims = tuple(
            replace(
                claim, finding=replace(claim.finding, headline=f"{name} {bears}.", bears_on=bears)
            )
            for claim in measured.study.claims
            if claim.finding is not None
            for bears in bears_on
        )
        return StudyFacts(measured.inputs, replace(measured.study, claims=claims))

    def headlines(*studies: StudyFacts) -> list[str]:
        return re.findall(r"<strong>([^<]*)[.]</strong>", top_findings(studies, str))

    first, second = about("first", "understanding", "code"), about("second", "code", "design")
    assert headlines(first, second) == ["second design", "first code"]
    assert len(findings(first)) == 2
    assert len(headlines(*[first] * (MAX_FINDINGS + 1))) == MAX_FINDINGS


def test_card_notes_unmeasured_skipped_and_stale_steps(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    assert "No machine has been measured yet." in card(facts_of(root))
    study = discover(root)["copy"]
    first, second = study.with_role("step")[:2]
    rows = rows_without_value(study, first, "skipped", "needs a newer driver")
    add_run(root / "results", "box", "copy", first.name, rows, provenance_of(study, first))
    assert journey_of(facts_of(root)) is None
    assert "No step has a figure yet" in card(facts_of(root))
    measure(root, second.name)
    second.path.write_text(second.path.read_text() + "\nint later_than_the_results;\n")
    html = card(facts_of(root))
    assert '<g class="stale end">' in html and "1 of 1 steps stale" in html
    assert "<strong>2.50 GB/s</strong>" in html and "→" not in html


def test_gain_needs_both_steps_in_one_run(measured: StudyFacts) -> None:
    ratios = measured.inputs.tables["ratios"]
    scaled = StudyFacts(
        measured.inputs.with_tables(ratios=ratios.assign(ratio=1.75)), measured.study
    )
    assert ">1.75×</span>" in card(scaled)
    alone = StudyFacts(measured.inputs.with_tables(ratios=ratios.iloc[:0]), measured.study)
    assert "6.00×" not in card(alone)
    of_one_host = ratios.assign(by_run="6|6|6", hosts=1)
    few = StudyFacts(measured.inputs.with_tables(ratios=of_one_host), measured.study)
    assert "6.00×" not in card(few)


def test_card_shows_the_machine_with_most_figures(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    measure(root, "bytewise", machine="a-box")
    measure(root, machine="b-box")
    journey = journey_of(facts_of(root))
    assert journey is not None and journey.machine == "b-box"
    assert "b-box, " in card(facts_of(root))


def test_card_ends_with_the_goal_if_measured(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    measure(root)
    facts = facts_of(root)
    fastest = journey_of(facts)
    assert fastest is not None and fastest.last.variant.name == "warps"
    aimed = StudyFacts(facts.inputs, replace(facts.study, goal="vectors"))
    journey = journey_of(aimed)
    assert journey is not None and journey.last.variant.name == "vectors"
    unmeasured = StudyFacts(facts.inputs, replace(facts.study, goal="not_measured"))
    assert journey_of(unmeasured) == fastest


def without(facts: StudyFacts, **metrics: str) -> StudyFacts:
    """The facts without one metric of each of these variants."""
    table = facts.inputs.tables["summary"]
    is_gone = table["variant"].map(metrics) == table["metric"]
    return StudyFacts(facts.inputs.with_tables(summary=table[~is_gone]), facts.study)


def test_card_is_by_a_clock_that_all_steps_have(measured: StudyFacts) -> None:
    html = card(without(measured, warps="gpu_time"))
    assert "→ <strong>7.50 GB/s</strong>" in html and "by host time</p>" in html


def test_card_names_the_steps_that_lack_its_clock(measured: StudyFacts) -> None:
    facts = without(measured, warps="gpu_time", vectors="host_time")
    html = card(facts)
    assert "→ <strong>6.25 GB/s</strong>" in html and "warps: " not in html
    assert "by device time. Left out, without device time: warps</p>" in html
    fastest = facts.ranking.fastest("box")
    assert fastest is not None and fastest.name == "in_flight"


def test_variants_with_other_work_are_not_drawn(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    description = root / "kernels" / "copy" / "study.yaml"
    head, _, steps = description.read_text().partition("name: warps")
    description.write_text(f"{head}name: warps{steps.replace('[grid]', '[few]', 1)}")
    measure(root)
    html = card(facts_of(root))
    assert "in_flight: 6.25 GB/s" in html and "warps: " not in html
    assert "→ <strong>6.25 GB/s</strong>" in html


def test_card_counts_the_runs_of_its_figures(measured: StudyFacts) -> None:
    summary = measured.inputs.tables["summary"]
    often = summary.assign(runs=5, hosts=2)
    assert "5 runs" in card(StudyFacts(measured.inputs.with_tables(summary=often), measured.study))
    less = often.assign(runs=often["runs"].where(often["variant"] != "warps", 3))
    assert "3 runs" in card(StudyFacts(measured.inputs.with_tables(summary=less), measured.study))


def test_other_studies_are_listed_by_group(measured: StudyFacts) -> None:
    html = other_studies({"Calibrations": [measured]}, lambda name: "")
    assert html == f"**Calibrations**\n\n- Copying rows: {measured.study.question}"


def test_both_ends_of_a_picture_are_outlined_and_named(measured: StudyFacts) -> None:
    journey = journey_of(measured)
    assert journey is not None
    card = cards([measured], lambda _: "")
    first, last = journey.first.variant, journey.last.variant
    outlined = re.findall(r'<g class="\w+ end"><title>(\w+):', card)
    assert outlined == [first.name, last.name]
