"""Figures and verdicts within sentences of any page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from analysis.base.errors import FieldError
from analysis.site.facts.comparison import Comparison
from analysis.site.facts.rows import runs_text
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages import inline
from analysis.site.pages.page import Page
from analysis.study import discover
from tests.roots import make_inputs, make_root, settled, without_data
from tests.synthetic import at_rates, write_machine


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_root(tmp_path_factory.mktemp("inline"))
    study = discover(root)["copy"]
    speeds = {"bytewise": 1.0, "vectors": 2.0}
    for machine in ("box", "other-box"):
        write_machine(
            root / "results",
            machine,
            study,
            seconds=at_rates(speeds),
            noise=1e-4,
        )
    return root


@pytest.fixture(scope="module")
def facts(root: Path) -> StudyFacts:
    return StudyFacts(settled(make_inputs(root)), discover(root)["copy"])


def clock(facts: StudyFacts) -> str:
    return facts.study.time_metrics[0]


def rate(facts: StudyFacts) -> str:
    return without_data(inline.rate(facts, "vectors", clock(facts)))


def test_rate_is_that_of_the_headline_case_and_follows_the_samples(facts: StudyFacts) -> None:
    assert rate(facts) == "2.0 GB/s"
    summary = facts.inputs.tables["summary"]
    faster = facts.inputs.with_tables(summary=summary.assign(median=summary["median"] / 2))
    assert rate(StudyFacts(faster, facts.study)) == "4.0 GB/s"
    stale = facts.inputs.with_tables(summary=summary.assign(stale=1))
    assert rate(StudyFacts(stale, facts.study)) == "2.0 GB/s (stale)"


def test_rate_from_few_runs_says_so_and_a_missing_one_is_named(root: Path) -> None:
    few = StudyFacts(make_inputs(root), discover(root)["copy"])
    assert rate(few) == "2.0 GB/s (in 1 run on 1 host)"
    none = few.inputs.with_tables(summary=few.inputs.tables["summary"].iloc[:0])
    assert inline.rate(StudyFacts(none, few.study), "vectors", clock(few)) == inline.MISSING
    assert inline.based_on(StudyFacts(none, few.study), "vectors", clock(few)) == inline.MISSING


def test_unknown_variant_case_and_claim_are_errors(facts: StudyFacts) -> None:
    with pytest.raises(FieldError, match="variant: expected one of"):
        inline.rate(facts, "vector")
    with pytest.raises(FieldError, match="case of vectors: expected one of"):
        inline.rate(facts, "vectors", clock(facts), no_such_key=1)
    with pytest.raises(FieldError, match="claim: expected one of"):
        inline.holds(facts, "vector")


def test_basis_names_machine_link_and_runs(facts: StudyFacts) -> None:
    described = {
        name: {**one, "pcie_generation": 5, "pcie_width": 16}
        for name, one in facts.inputs.machines.items()
    }
    linked = StudyFacts(replace(facts.inputs, machines=described), facts.study)
    assert inline.based_on(linked, "vectors", clock(facts)).startswith(
        f"{facts.inputs.called('box')} over PCIe 5 x16"
    )


def test_verdict_chooses_words(facts: StudyFacts) -> None:
    assert inline.holds(facts, "vectors") == "yes"
    claims = facts.inputs.tables["claims"]
    failed = facts.inputs.with_tables(claims=claims.assign(verdict="does not hold"))
    assert inline.holds(StudyFacts(failed, facts.study), "vectors") == ""


def test_results_choose_sections(facts: StudyFacts) -> None:
    assert inline.has_results(facts) == "yes"
    empty = {name: facts.inputs.tables[name].iloc[:0] for name in ("summary", "skipped")}
    assert inline.has_results(StudyFacts(facts.inputs.with_tables(**empty), facts.study)) == ""


def test_figure_of_a_claim_has_its_basis_and_leads_to_the_evidence(facts: StudyFacts) -> None:
    page = cast(Page, SimpleNamespace(study_address=lambda study: f"studies/{study}/"))
    figure = without_data(inline.measured(page, facts, "vectors"))
    assert figure.startswith('<a href="studies/copy/#copy-vectors">2.00×</a> (box; ')
    claims = facts.inputs.tables["claims"]
    none = facts.inputs.with_tables(claims=claims.iloc[:0])
    assert inline.measured(page, StudyFacts(none, facts.study), "vectors") == inline.MISSING


@pytest.mark.parametrize(
    ("factor", "begins"),
    [
        (1.0, "{0} and {1} are equal within 5 %: 2.00 GB/s on {0} and 2.00 GB/s on {1}."),
        (1.02, "No difference found between {0} and {1}: 2.00 GB/s on {0} and"),
        (2.0, "{0} is faster than {1}: 2.00 GB/s on {0} and 1.00 GB/s on {1}."),
        (0.5, "{0} is slower than {1}: 2.00 GB/s on {0} and 4.00 GB/s on {1}."),
    ],
)
def test_two_machines_are_compared_by_their_runs(
    facts: StudyFacts, factor: float, begins: str
) -> None:
    summary = facts.inputs.tables["summary"]
    factors = summary["machine"].map({"other-box": factor}).fillna(1.0)
    width = 1.1 if factor == 1.02 else 1.001
    median = summary["median"] * factors
    by_run = [runs_text((one / width, one, one * width)) for one in median]
    changed = summary.assign(median=median, by_run=by_run, runs=3, hosts=2)
    other = StudyFacts(facts.inputs.with_tables(summary=changed), facts.study)
    comparison = Comparison(other.inputs, {"copy": other})
    sentence = inline.on_two_machines(comparison, other, "vectors", clock(facts))
    machines = [other.inputs.called(one) for one in ("box", "other-box")]
    assert sentence.startswith(begins.format(*machines))


def test_nothing_is_compared_without_a_second_machine(facts: StudyFacts) -> None:
    summary = facts.inputs.tables["summary"]
    one = facts.inputs.with_tables(summary=summary[summary["machine"] == "box"])
    alone = StudyFacts(one, facts.study)
    comparison = Comparison(one, {"copy": alone})
    assert inline.on_two_machines(comparison, alone, "vectors", clock(facts)) == ""
