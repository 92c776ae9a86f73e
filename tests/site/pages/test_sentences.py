"""Sentences on results: verdicts, the order of steps, the fastest variant, absent results."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from analysis.base.quantities import percent
from analysis.results.tables.rows import RatioRow
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.fragments import Place
from analysis.site.pages.sentences import (
    comparison_phrase,
    order_sentences,
    reach_sentence,
    result_sentence,
    step_sentence,
)
from analysis.site.pages.study_pages import lead
from analysis.site.pages.variants import sections
from analysis.study import Case, Variant, discover
from tests.roots import (
    make_inputs,
    make_root,
    rows_without_value,
    settled,
)
from tests.synthetic import add_run, at_rates, provenance_of, write_machine


@pytest.mark.parametrize(
    ("verdict", "low", "value", "high", "expected"),
    [
        ("faster", 3.87, 3.91, 3.95, "is 3.91 times (3.87 to 3.95) as fast as `before` by device"),
        (
            *("faster", 0.752, 1.61, 3.5),
            "is 1.61 times as fast as `before` by device time in these 3 runs; a further run may be"
            " anything from 25 % slower to 250 % faster.",
        ),
        ("slower", 0.4, 0.5, 0.625, "it takes 2.00 times (1.6 to 2.5) as long by device time"),
        (
            *("slower", 0.8, 0.9, 1.25),
            "it takes 1.11 times as long by device time in these 3 runs; a further run may take"
            " anything from 20 % less to 25 % more time.",
        ),
        ("same", 0.998, 1.001, 1.004, "as fast as `before` within 1 %: 1.001× its speed (0.998"),
        (
            "unclear",
            0.8,
            1.2,
            1.5,
            "since either this step or `before` may be faster in another run: 1.20×",
        ),
        (
            "unclear",
            0.96,
            1.007,
            1.05,
            "difference between this step and `before`: 1.007×",
        ),
        (
            "unclear",
            0.2,
            0.5,
            1.25,
            "it takes 2.00 times as long (0.80 to 5.0) by device",
        ),
        ("unclear", 1.003, 1.007, 1.016, "1.007× its speed (1.003 to 1.016) by device time."),
    ],
)
def test_every_verdict_has_its_sentence(
    verdict: str, low: float, value: float, high: float, expected: str
) -> None:
    compared = ("box", "copy", "after", "before", "n=1", "gpu_time")
    row = RatioRow(*compared, value, low, high, verdict, runs=3, hosts=3, by_run="", apart=0)
    assert expected in comparison_phrase(row, "this step", "speed", "device time") + "."
    of_another = comparison_phrase(row, "this variant", "speed", "device time")
    assert "this variant" in of_another and "step" not in of_another


def test_variant_with_other_bytes_is_compared_by_rate(tmp_path: Path) -> None:
    # `longer` takes more time for its longer rows, and is faster by its rate.
    facts = measured_at(make_root(tmp_path), {"in_flight": 4.0, "longer": 4.8, "ceiling_kernel": 8})
    longer, before = (facts.study.variant(name) for name in ("longer", "in_flight"))
    times = [facts.figures.time("box", variant) for variant in (longer, before)]
    assert times[0] and times[1] and times[0].median > times[1].median
    sentence = result_sentence(facts, "box", longer)
    assert "this variant has 1.20 times (" in sentence
    assert "the payload rate of `in_flight` by device time. It reaches 60 % of" in sentence
    html = sections(facts, Place(tmp_path, "../"), "beyond")
    assert re.findall(r">(1\.\d+)× \([^)]*\) by rate<", html) == ["1.20"]


def test_step_shows_its_gain_and_its_share_of_the_limit(
    measured: StudyFacts,
) -> None:
    first, second = measured.study.with_role("step")[:2]
    shown = measured.study.shown_case(second)
    limit = measured.figures.limit_share("box", second, shown, "gpu_time")
    assert limit is not None
    ceilings = [
        measured.figures.ratios["box", second.name, ceiling.name, shown.id, "gpu_time"].ratio
        for ceiling in measured.study.with_role("ceiling")
    ]
    assert limit.share == min(ceilings) < max(ceilings)
    reached = f"{percent(limit.share)} of the rate of `{limit.ceiling}`."
    sentence = result_sentence(measured, "box", second)
    assert sentence.startswith(step_sentence(measured, "box", second))
    assert sentence.endswith(f"It reaches {reached}")
    assert result_sentence(measured, "box", first).startswith(
        "On box (3 runs, 3 hosts) this step reaches "
    )


@pytest.mark.parametrize(
    ("speed", "reached"),
    [
        (11.0, "reaches 110 % of {rate}, so that is a reference and no limit."),
        (10.0, "reaches {rate}."),
    ],
)
def test_a_ceiling_that_a_step_exceeds_is_no_limit(
    tmp_path: Path, speed: float, reached: str
) -> None:
    speeds = {"bytewise": 1.0, "vectors": speed, "ceiling_engine": 10.0}
    facts = measured_at(make_root(tmp_path), speeds)
    sentence = result_sentence(facts, "box", facts.study.variant("vectors"))
    assert sentence.endswith(reached.format(rate="the rate of `ceiling_engine`"))


def test_variant_is_a_share_of_its_ceilings_only(measured: StudyFacts) -> None:
    step = measured.study.with_role("step")[1]
    fastest = measured.figures.reached("box", step)
    assert fastest is not None
    others = [c for c in measured.study.ceilings_of(step) if c.name != fastest.ceiling]
    share = measured.figures.reached("box", replace(step, ceilings=(others[0].name,)))
    assert share is not None and share.ceiling == others[0].name
    assert share.share > fastest.share
    without = replace(step, ceilings=())
    assert measured.figures.reached("box", without) is None


def test_ceiling_of_another_operation_does_not_count(measured: StudyFacts) -> None:
    fastest = measured.ranking.contenders("box")[0]
    variants = tuple(
        replace(variant, ceilings=()) if variant == fastest else variant
        for variant in measured.study.variants
    )
    without = StudyFacts(measured.inputs, replace(measured.study, variants=variants))
    contenders = [variant.name for variant in without.ranking.contenders("box")]
    assert contenders == [variant.name for variant in measured.ranking.contenders("box")[1:]]


def test_sentences_follow_the_results(measured: StudyFacts) -> None:
    said = [step_sentence(measured, "box", step) for step in measured.study.with_role("step")]
    assert said[0] == ""
    for sentence, expected in zip(
        said[1:],
        ("as fast as", "as fast as", "slower than", "may be faster in another run"),
        strict=True,
    ):
        assert expected in sentence
        assert sentence.startswith("On box ") and sentence.endswith("by device time.")
    (order,) = order_sentences(measured)
    names = measured.study.variant_names
    assert f"`{names[3]}` is slower than `vectors` and `{names[2]}`;" in order
    assert f"From slowest to fastest by device time, the steps are `{names[0]}`" in order
    summary = measured.inputs.tables["summary"]
    stale = summary.assign(stale=(summary["variant"] == names[0]).astype(int))
    (of_fresh,) = order_sentences(
        StudyFacts(measured.inputs.with_tables(summary=stale), measured.study)
    )
    assert f"`{names[0]}`" not in of_fresh and f"`{names[3]}`" in of_fresh
    in_no_headline = replace(measured.study, headline="none")
    assert order_sentences(StudyFacts(measured.inputs, in_no_headline)) == []


def test_cases_with_the_opposite_verdict_are_named(measured: StudyFacts) -> None:
    _, second = measured.study.with_role("step")[:2]
    table = measured.inputs.tables["ratios"]
    pair = (table["variant"] == second.name) & (table["against"] == second.after)
    elsewhere = table[pair].assign(case="n=9", ratio=0.5, ci_low=0.4, ci_high=0.6, verdict="slower")
    with_more = measured.inputs.with_tables(ratios=pd.concat([table, elsewhere]))
    sentence = step_sentence(StudyFacts(with_more, measured.study), "box", second)
    assert sentence.startswith(step_sentence(measured, "box", second))
    assert " Cases disagree: it is slower in 1 of " in sentence
    assert f" In case `n=9`, against `{second.after}`: it takes 2.00 times as long (" in sentence


def test_case_other_than_the_headline_is_named(tmp_path: Path) -> None:
    facts = measured_at(make_root(tmp_path), {"vectors": 2.0, "warps": 4.0, "ceiling_kernel": 8.0})
    headline, second = facts.study.headline, facts.study.variant("warps")
    elsewhere = replace(facts.study, headline="none")
    shown = elsewhere.shown_case(second).id
    other = StudyFacts(facts.inputs, elsewhere)
    limit = other.study.variant("ceiling_kernel")
    for sentence in (result_sentence(other, "box", second), reach_sentence(other, "box", limit)):
        assert sentence.startswith(f"On box, in case `{shown}`, th")
    first = result_sentence(other, "box", facts.study.variant("vectors"))
    assert first.startswith("On box `bytewise` has not been measured.")
    for sentence in (result_sentence(facts, "box", second), reach_sentence(facts, "box", limit)):
        assert sentence.startswith("On box th") and headline not in sentence


def test_variants_beyond_the_journey_are_no_steps(tmp_path: Path) -> None:
    speeds = {"in_flight": 4.0, "shifted": 8.0, "ceiling_kernel": 8.0}
    facts = measured_at(make_root(tmp_path), speeds)
    beyond, ceiling = (facts.study.variant(name) for name in list(speeds)[1:])
    assert "On box this variant is 2.00 times" in step_sentence(facts, "box", beyond)
    assert "the fastest variant beyond the steps, `shifted`" in reach_sentence(
        facts, "box", ceiling
    )
    assert order_sentences(facts) == []


def test_order_needs_no_sentence_where_steps_get_faster(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    study = discover(root)["copy"]
    seconds = at_rates({name: number for number, name in enumerate(study.variant_names, start=1)})
    steps = study.with_role("step")
    write_machine(root / "results", "box", study, variants=steps, seconds=seconds)
    assert order_sentences(StudyFacts(settled(make_inputs(root)), study)) == []


def measured_at(root: Path, speeds: Mapping[str, float]) -> StudyFacts:
    """Nearly exact results of the variants in `speeds`, and of no other."""
    study = discover(root)["copy"]
    seconds = at_rates(speeds)
    variants = [study.variant(name) for name in speeds]
    write_machine(root / "results", "box", study, variants=variants, seconds=seconds, noise=1e-4)
    return StudyFacts(settled(make_inputs(root)), study)


def test_an_easier_problem_is_never_the_fastest(tmp_path: Path) -> None:
    facts = measured_at(make_root(tmp_path), {"bytewise": 1.0, "in_flight": 3.0, "aligned": 9.0})
    easier = facts.study.variant("aligned")
    first = facts.study.variant("bytewise")
    assert facts.study.shown_case(easier) == facts.study.shown_case(first)
    assert [step.name for step in facts.ranking.contenders("box")] == ["in_flight", "bytewise"]


def test_fastest_is_shown_with_indistinguishable_variants(tmp_path: Path) -> None:
    speeds = {"vectors": 2.0, "warps": 4.0, "in_flight": 4.001}
    facts = measured_at(make_root(tmp_path), {**speeds, "ceiling_kernel": 8.0})
    (tie,) = facts.ranking.ties("box")
    best = facts.ranking.fastest("box")
    assert best is not None
    assert {best.name, tie.name} == {"warps", "in_flight"}
    ceiling = facts.study.variant("ceiling_kernel")
    said = f"the fastest step, `{best.name}` (no measurable difference from `{tie.name}`), takes"
    assert said in reach_sentence(facts, "box", ceiling)
    summary = facts.inputs.tables["summary"]
    stale = summary.assign(stale=(summary["variant"] == tie.name).astype(int))
    of_fresh = StudyFacts(facts.inputs.with_tables(summary=stale), facts.study)
    assert of_fresh.ranking.ties("box") == []


def test_a_step_that_delivers_other_bytes_is_no_contender(tmp_path: Path) -> None:
    facts = measured_at(make_root(tmp_path), {"bytewise": 1.0, "vectors": 2.0})
    first, second = (facts.study.variant(name) for name in ("bytewise", "vectors"))
    smaller = min(second.cases, key=lambda case: case.payload_bytes)
    assert smaller.payload_bytes < facts.study.shown_case(first).payload_bytes
    variants = tuple(
        replace(variant, cases=(smaller,)) if variant == second else variant
        for variant in facts.study.variants
    )
    other = StudyFacts(facts.inputs, replace(facts.study, variants=variants))
    assert other.figures.time("box", other.study.variant("vectors")) is not None
    assert other.ranking.contenders("box") == [first]


def test_steps_that_do_not_follow_each_other_are_paired_as_well(tmp_path: Path) -> None:
    facts = measured_at(make_root(tmp_path), {"vectors": 2.0, "in_flight": 4.0})
    slow, fast = (facts.study.variant(name) for name in ("vectors", "in_flight"))
    assert facts.ranking.is_surely_faster("box", fast, slow, "gpu_time")
    assert not facts.ranking.is_surely_faster("box", slow, fast, "gpu_time")
    assert facts.ranking.ties("box") == []


def constant(seconds: float, variant: Variant, case: Case, metric: str) -> float:
    return seconds


def test_no_comparison_without_a_common_run(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    study = discover(root)["copy"]
    for name, run, seconds in (("vectors", "2026-01-01", 4e-3), ("in_flight", "2026-01-02", 1e-3)):
        write_machine(
            root / "results",
            "box",
            study,
            variants=[study.variant(name)],
            run=f"{run}T00:00:00Z",
            seconds=partial(constant, seconds),
        )
    facts = StudyFacts(settled(make_inputs(root)), study)
    slow, fast = (study.variant(name) for name in ("vectors", "in_flight"))
    assert facts.ranking.fastest("box") == fast
    assert not facts.ranking.is_surely_faster("box", fast, slow, "gpu_time")
    assert facts.ranking.ties("box") == []


def test_absent_results_are_noted(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    study = discover(root)["copy"]
    first, second, third, *_ = study.with_role("step")
    write_machine(root / "results", "box", study, variants=[first])
    rows = rows_without_value(study, second, "skipped", "needs a newer driver")
    add_run(root / "results", "box", "copy", second.name, rows, provenance_of(study, second))
    facts = StudyFacts(settled(make_inputs(root)), study)
    assert f"`{second.name}` was skipped: needs a newer driver" in step_sentence(
        facts, "box", second
    )
    assert f"`{third.name}` has not been measured" in step_sentence(facts, "box", third)


def test_a_stale_result_is_noted(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    vectors = measured_at(root, {"bytewise": 1.0, "vectors": 2.0}).study.variant("vectors")
    vectors.path.write_text(vectors.path.read_text() + "\nint later_than_the_results;\n")
    facts = StudyFacts(settled(make_inputs(root)), discover(root)["copy"])
    assert "the result of `vectors` is stale" in step_sentence(facts, "box", vectors)


def test_pages_call_a_machine_by_its_gpus(measured: StudyFacts, tmp_path: Path) -> None:
    two = {"box": {"gpu": "NVIDIA H200", "gpus": 2}}
    facts = StudyFacts(replace(measured.inputs, machines=two), measured.study)
    roles = ("step", "beyond", "reference", "ceiling")
    text = lead(facts) + sections(facts, Place(tmp_path, "../../"), *roles)
    visible = re.sub(r"<[^>]*>", " ", text)
    assert "On 2 × H200 this step" in visible
    assert not re.search(r"\bbox\b", visible)
    assert "../../data/?samples.case=" in text and "#box-copy-" in text
