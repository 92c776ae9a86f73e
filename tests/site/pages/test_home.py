"""The home page: a card a journey, findings, and what becomes of both where results are few."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.site.facts.findings import Slower, Told, largest_surprise
from analysis.site.facts.journeys import journey_of
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages import home
from analysis.site.pages.home import cards, contradicted_beliefs, other_studies
from analysis.study import Case, Variant, discover
from analysis.study.claims.findings import Bearing
from tests.roots import make_inputs, make_root, rows_without_value
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
    return StudyFacts(make_inputs(root), discover(root)["copy"])


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


def test_a_card_tells_first_and_fastest_step_their_share_and_where_it_was(
    measured: StudyFacts,
) -> None:
    told = card(measured)
    assert '<h3><a href="studies/copy/">Copying rows</a></h3>' in told
    assert "<strong>1.25 GB/s</strong> → <strong>7.50 GB/s</strong>" in told
    assert "<span>6.00×</span>" in told
    assert "10 % → 61 % of the limit: The copy engine (dashed)" in told
    assert "box; one run; 2026-01-02; 1 not measured" in told
    drawn = [float(height) for height in re.findall(r'<rect [^>]*height="([\d.]+)"', told)]
    assert drawn == pytest.approx([drawn[0] * speed for speed in (1, 2, 6, 5)], rel=0.02)
    assert "bytewise: 1.25 GB/s; vectors: 2.50 GB/s" in told


@pytest.mark.parametrize(
    ("shares", "told"),
    [
        ((0.1, 0.61), "10 % → 61 % of the limit"),
        ((0.017, 1.009), "1.7 % of the limit → at the limit"),
        ((0.9951, 1.05), "at the limit"),
        ((0.5, 0.994), "50 % → 99 % of the limit"),
        ((0.5, 1.3), "50 % → 130 % of the limit"),
        ((0.5,), "50 % of the limit"),
    ],
)
def test_what_is_not_told_apart_from_the_limit_is_at_it(
    shares: tuple[float, ...], told: str
) -> None:
    assert home._limit_shares(shares, "the limit") == told


def test_what_surprises_most_is_a_claim_far_from_its_figure_or_a_slower_step(
    measured: StudyFacts,
) -> None:
    # The published times make vectors 4 times as fast.
    surprise = largest_surprise(measured, "box")
    assert isinstance(surprise, Told) and surprise.claim.id == "vectors"
    assert "“Vectors make the kernel faster.” Measured: 2.0" in card(measured)
    without = StudyFacts(
        replace(measured.inputs, claims=measured.inputs.claims.iloc[:0]), measured.study
    )
    slower = largest_surprise(without, "box")
    assert isinstance(slower, Slower) and slower.step.name == "in_flight"
    assert "<code>in_flight</code> takes 1.20 times" in card(without)


def test_a_card_says_what_was_counted(tmp_path: Path) -> None:
    test = {"kind": "figure", "of": "fast", "metric": "sms_used", "at_most": 16}
    study = write_study(tmp_path, claim(**test))
    measure_small(tmp_path / "results", study, sms=128)
    told = card(StudyFacts(make_inputs(tmp_path, {study.name: study}), study))
    assert "“It is so.” Measured, SMs: 128; expected: at most 16." in told


def test_a_finding_is_told_with_its_figures_and_leads_to_the_claim(measured: StudyFacts) -> None:
    told = contradicted_beliefs([measured], lambda name: f"studies/{name}/")
    assert told.startswith("## One finding against common beliefs")
    assert "<strong>Vectors are 2.00× as fast as bytes.</strong>" in told
    assert "Belief: Bytes are as fast as vectors." in told
    assert 'href="studies/copy/#copy-vectors"' in told
    assert "on box (one run), threshold chosen after this run." in told
    claims = measured.inputs.claims.assign(bound="before", judging=1)
    foreseen = StudyFacts(replace(measured.inputs, claims=claims), measured.study)
    assert "on box (one run). " in contradicted_beliefs([foreseen], str)
    few = StudyFacts(replace(measured.inputs, claims=claims.assign(runs=4)), measured.study)
    said = ", 4 runs; 1 of them may judge: the others are older than the threshold. "
    assert f"on box (one run){said}" in contradicted_beliefs([few], str)


def test_what_bears_on_design_comes_first_else_findings_are_in_the_order_of_studies(
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
    told = re.findall(r"<strong>([^<]*)[.]</strong>", contradicted_beliefs(studies, str))
    assert told == ["second design", "first code", "second code", "first understanding"]


def test_a_finding_says_where_it_is_otherwise_and_leaves_without_its_verdict(
    tmp_path: Path,
) -> None:
    root = make_root(tmp_path)
    measure(root)
    measure(root, "bytewise", "vectors", machine="slow-box", speeds={"bytewise": 1, "vectors": 0.5})
    measure(root, "bytewise", machine="half-box")
    told = contradicted_beliefs([facts_of(root)], str)
    assert "on box (one run), not tested on half-box, but not on slow-box" in told
    for machine in ("box", "half-box"):
        vectors = root / "results" / machine / "copy" / "vectors.csv"
        vectors.unlink(missing_ok=True)
        vectors.with_suffix(".json").unlink(missing_ok=True)
    assert "Vectors are" not in contradicted_beliefs([facts_of(root)], str)


def test_a_card_of_what_is_not_measured_skipped_or_stale_says_so(tmp_path: Path) -> None:
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
    told = card(facts_of(root))
    assert '<g class="stale end">' in told and "1 of 1 steps stale" in told
    assert "<strong>2.50 GB/s</strong>" in told and "→" not in told


def test_a_gain_is_of_what_one_run_has_both_of(measured: StudyFacts) -> None:
    ratios = measured.inputs.ratios
    scaled = StudyFacts(replace(measured.inputs, ratios=ratios.assign(ratio=1.75)), measured.study)
    assert "<span>1.75×</span>" in card(scaled)
    alone = StudyFacts(replace(measured.inputs, ratios=ratios.iloc[:0]), measured.study)
    assert "6.00×" not in card(alone)


def test_the_machine_that_says_most_is_told(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    measure(root, "bytewise", machine="a-box")
    measure(root, machine="b-box")
    journey = journey_of(facts_of(root))
    assert journey is not None and journey.machine == "b-box"
    assert "also on a-box" in card(facts_of(root))


def test_a_card_ends_with_the_goal_where_that_is_measured(tmp_path: Path) -> None:
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


def test_what_did_other_work_is_not_drawn_beside_the_steps(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    description = root / "kernels" / "copy" / "study.yaml"
    head, _, steps = description.read_text().partition("name: warps")
    description.write_text(f"{head}name: warps{steps.replace('[grid]', '[few]', 1)}")
    measure(root)
    told = card(facts_of(root))
    assert "in_flight: 6.25 GB/s" in told and "warps: " not in told
    assert "→ <strong>6.25 GB/s</strong>" in told


def test_a_card_stands_on_the_runs_of_the_figures_that_it_tells(measured: StudyFacts) -> None:
    summary = measured.inputs.summary
    often = summary.assign(runs=5, hosts=2)
    assert "5 runs" in card(StudyFacts(replace(measured.inputs, summary=often), measured.study))
    once = often.assign(runs=often["runs"].where(often["variant"] != "warps", 1))
    assert "one run" in card(StudyFacts(replace(measured.inputs, summary=once), measured.study))


def test_other_studies_are_told_by_group(measured: StudyFacts) -> None:
    told = other_studies({"Calibrations": [measured]}, lambda name: "")
    assert told == f"### Calibrations\n\n**Copying rows.** {measured.study.question}"


def test_both_ends_of_a_picture_are_outlined_and_named(measured: StudyFacts) -> None:
    journey = journey_of(measured)
    assert journey is not None
    card = cards([measured], lambda _: "")
    first, last = journey.first.variant, journey.last.variant
    outlined = re.findall(r'<g class="\w+ end"><title>(\w+):', card)
    assert outlined == [first.name, last.name]
    assert f"<p>{first.title} → {last.title}</p>" in card
