"""The home page: one card per journey, findings, and both with few results."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.site.facts.findings import ClaimResult, Slower, largest_surprise
from analysis.site.facts.journeys import journey_of
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages import home
from analysis.site.pages.home import cards, contradicted_beliefs, other_studies
from analysis.study import Case, Variant, discover
from analysis.study.claims.findings import Bearing
from tests.roots import make_inputs, make_root, rows_without_value, settled
from tests.study.claims.studies import claim, write_study
from tests.study.claims.studies import measure as measure_small
from tests.synthetic import add_run, provenance_of, write_machine

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

    def seconds(variant: Variant, case: Case, metric: str) -> float:
        return case.payload_bytes / 1e9 / speeds[variant.name]

    variants = [study.variant(name) for name in names or speeds]
    write_machine(
        root / "results",
        machine,
        study,
        variants=variants,
        seconds=seconds,
        noise=1e-4,
        grid="smoke",
    )


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> StudyFacts:
    root = make_root(tmp_path_factory.mktemp("home"))
    measure(root)
    return facts_of(root)


def card(facts: StudyFacts) -> str:
    return str(cards([facts], lambda name: f"studies/{name}/"))


def test_card_shows_first_and_fastest_step_their_share_and_their_machine(
    measured: StudyFacts,
) -> None:
    html = card(measured)
    assert '<h3><a href="studies/copy/">Copying rows</a></h3>' in html
    assert "<strong>1.25 GB/s</strong> → <strong>7.50 GB/s</strong>" in html
    assert ">6.00×</span>" in html
    assert "10 % → 61 % of the limit: The copy engine (dashed)" in html
    assert "box; 3 runs, 3 hosts; 2026-01-02; 1 not measured" in html
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


def test_largest_surprise_is_a_claim_far_off_or_a_slower_step(
    measured: StudyFacts,
) -> None:
    # The published times make vectors 4 times as fast.
    surprise = largest_surprise(measured, "box")
    assert isinstance(surprise, ClaimResult) and surprise.claim.id == "vectors"
    assert "“Vectors make the kernel faster.” Measured: 2.0" in card(measured)
    without = StudyFacts(
        measured.inputs.with_tables(claims=measured.inputs.tables["claims"].iloc[:0]),
        measured.study,
    )
    slower = largest_surprise(without, "box")
    assert isinstance(slower, Slower) and slower.step.name == "in_flight"
    assert "<code>in_flight</code> takes 1.20 times" in card(without)


def test_card_names_the_counted_unit(tmp_path: Path) -> None:
    test = {"kind": "figure", "of": "fast", "metric": "sms_used", "at_most": 16}
    study = write_study(tmp_path, claim(**test))
    measure_small(tmp_path / "results", study, sms=128)
    html = card(StudyFacts(settled(make_inputs(tmp_path, {study.name: study})), study))
    assert "“It is so.” Measured, SMs: 128; expected: at most 16." in html


def test_home_names_the_machines_on_which_a_claim_holds(measured: StudyFacts) -> None:
    of_copy = {"copy": measured}
    assert home.where_holds(of_copy, "copy", "vectors") == " on box"
    unconfirmed = ", which no machine's results confirm yet"
    assert home.where_holds(of_copy, "copy", "unknown") == unconfirmed
    assert home.where_holds({}, "copy", "vectors") == unconfirmed


def test_finding_shows_its_figures_and_links_to_the_claim(measured: StudyFacts) -> None:
    html = contradicted_beliefs([measured], lambda name: f"studies/{name}/")
    assert html.startswith("## One finding that contradicts common beliefs")
    assert "<strong>Vectors are 2.00× as fast as bytes.</strong>" in html
    assert "Belief: Bytes are as fast as vectors." in html
    assert 'href="studies/copy/#copy-vectors"' in html
    assert "on box, threshold chosen after these runs." in html
    claims = measured.inputs.tables["claims"].assign(bound="before", judging=3)
    foreseen = StudyFacts(measured.inputs.with_tables(claims=claims), measured.study)
    assert "on box. " in contradicted_beliefs([foreseen], str)
    few = StudyFacts(measured.inputs.with_tables(claims=claims.assign(runs=6)), measured.study)
    said = ", 6 runs, 3 of them made after the threshold was fixed; only these decide. "
    assert f"on box{said}" in contradicted_beliefs([few], str)


def test_findings_on_design_come_first_then_in_order_of_studies(
    measured: StudyFacts,
) -> None:
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

    studies = [about("first", "understanding", "code"), about("second", "code", "design")]
    headlines = re.findall(r"<strong>([^<]*)[.]</strong>", contradicted_beliefs(studies, str))
    assert headlines == ["second design", "first code", "second code", "first understanding"]


def test_finding_names_machines_with_another_verdict(
    tmp_path: Path,
) -> None:
    root = make_root(tmp_path)
    measure(root)
    measure(root, "bytewise", "vectors", machine="slow-box", speeds={"bytewise": 1, "vectors": 0.5})
    measure(root, "bytewise", machine="half-box")
    html = contradicted_beliefs([facts_of(root)], str)
    assert (
        "on box, not tested on half-box (3 runs, 3 hosts), but not on slow-box (3 runs, 3 hosts)"
        in html
    )
    for machine in ("box", "half-box"):
        vectors = root / "results" / machine / "copy" / "vectors.csv"
        vectors.unlink(missing_ok=True)
        vectors.with_suffix(".json").unlink(missing_ok=True)
    assert "Vectors are" not in contradicted_beliefs([facts_of(root)], str)


def test_card_notes_unmeasured_skipped_and_stale_steps(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    assert "No machine has been measured yet." in card(facts_of(root))
    study = discover(root)["copy"]
    first, second = study.with_role("step")[:2]
    rows = rows_without_value(study, first, "skipped", "needs a newer driver")
    add_run(root / "results", "box", "copy", first.name, rows, provenance_of(study, first))
    (root / "results" / "box" / "machine.json").write_text('{"gpu": "Synthetic GPU"}')
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


def test_card_shows_the_machine_with_most_figures(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    measure(root, "bytewise", machine="a-box")
    measure(root, machine="b-box")
    journey = journey_of(facts_of(root))
    assert journey is not None and journey.machine == "b-box"
    assert "also on a-box" in card(facts_of(root))


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
    assert html == f"### Calibrations\n\n**Copying rows.** {measured.study.question}"


def test_both_ends_of_a_picture_are_outlined_and_named(measured: StudyFacts) -> None:
    journey = journey_of(measured)
    assert journey is not None
    card = cards([measured], lambda _: "")
    first, last = journey.first.variant, journey.last.variant
    outlined = re.findall(r'<g class="\w+ end"><title>(\w+):', card)
    assert outlined == [first.name, last.name]
    assert f"<p>{first.title} → {last.title}</p>" in card
