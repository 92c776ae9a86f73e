"""Figures, ratios and verdicts within sentences of any page."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest

from analysis.base.errors import FieldError
from analysis.site.facts.rows import ParameterRow
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages import inline
from analysis.site.pages.page import Page
from analysis.study import discover
from tests.roots import make_inputs, make_root, settled, without_data
from tests.synthetic import at_rates, write_machine


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_root(tmp_path_factory.mktemp("inline"))
    speeds = at_rates({"bytewise": 1.0, "vectors": 2.0})
    for machine in ("box", "other-box"):
        write_machine(root / "results", machine, discover(root)["copy"], seconds=speeds, noise=1e-4)
    return root


@pytest.fixture(scope="module")
def facts(root: Path) -> StudyFacts:
    return StudyFacts(settled(make_inputs(root)), discover(root)["copy"])


def page(*published: str) -> Page:
    """A page at studies/copy/ of a site that publishes some machines."""
    env = SimpleNamespace(
        page=SimpleNamespace(url="studies/copy/", file=SimpleNamespace(src_uri="studies/copy.md"))
    )
    pages = {"copy": "studies/copy.md"}
    return Page(cast(Any, SimpleNamespace(published=published, pages=pages)), env)


def changed(facts: StudyFacts, table: str, **columns: Any) -> StudyFacts:
    """Facts with other values in some columns of a table."""
    made: pd.DataFrame = facts.inputs.tables[table].assign(**columns)
    return StudyFacts(facts.inputs.with_tables(**{table: made}), facts.study)


def test_a_figure_follows_the_samples_and_names_its_basis(facts: StudyFacts) -> None:
    shown = inline.figure(page("box"), facts, "vectors")
    assert ">2.00 GB/s<" in shown
    assert 'title="box; 95 % interval: ' in shown and "; 3 runs, 3 hosts; " in shown
    assert 'href="../../data/?samples.case=' in shown and "#box-copy-vectors" in shown
    other = inline.figure(page("other-box"), facts, "vectors", as_time=True)
    assert 'title="other-box; ' in other and "s</data>" in other and "GB/s" not in other
    seconds = facts.inputs.tables["summary"]["median"] / 2
    assert ">4.00 GB/s<" in inline.figure(
        page(), changed(facts, "summary", median=seconds), "vectors"
    )
    assert "; stale; " in inline.figure(page(), changed(facts, "summary", stale=1), "vectors")


def test_a_figure_of_few_runs_is_marked(root: Path) -> None:
    few = StudyFacts(make_inputs(root), discover(root)["copy"])
    shown = inline.figure(page("box"), few, "vectors")
    assert 'class="hp-figure hp-few"' in shown
    assert 'title="box; one run (too few for a headline); ' in shown
    of_one_host = changed(StudyFacts(settled(few.inputs), few.study), "summary", hosts=1)
    shown = inline.figure(page("box"), of_one_host, "vectors")
    assert "hp-few" in shown and "3 runs, 1 host (too few" in shown


def test_no_interval_of_a_rate_exceeds_that_of_the_link(facts: StudyFacts) -> None:
    rate = ParameterRow("box", "link_rate", 2.01e9, "B/s", math.nan, math.nan, 24, 1)
    summary = facts.inputs.tables["summary"]
    wide = summary.assign(ci_low=summary["median"] / 2, ci_high=summary["median"] * 2)
    machines = {name: {**one, "sms": 4} for name, one in facts.inputs.machines.items()}
    inputs = replace(facts.inputs, machines=machines).with_tables(
        summary=wide, model_parameters=pd.DataFrame([rate])
    )
    linked = replace(facts.study.variant("vectors"), link={"reads": "copy_engine"}, after=None)
    study = replace(facts.study, variants=(linked,))
    shown = inline.figure(page("box"), StudyFacts(inputs, study), "vectors")
    assert "95 % interval: 1.0 to 2.0 GB/s" in shown


def test_a_missing_figure_stops_the_build_unless_it_is_a_trial(facts: StudyFacts) -> None:
    none = StudyFacts(
        facts.inputs.with_tables(
            summary=facts.inputs.tables["summary"].iloc[:0],
            ratios=facts.inputs.tables["ratios"].iloc[:0],
            claims=facts.inputs.tables["claims"].iloc[:0],
        ),
        facts.study,
    )

    def given(page: Page) -> list[Callable[[], str]]:
        return [
            lambda: inline.figure(page, none, "vectors"),
            lambda: inline.ratio(page, none, "vectors", "bytewise"),
            lambda: inline.measured(page, none, "vectors"),
        ]

    for stops, shows in zip(given(page("box")), given(page()), strict=True):
        with pytest.raises(FieldError, match="copy: expected a "):
            stops()
        assert 'class="hp-gap"' in shows()


def test_unknown_names_are_errors(facts: StudyFacts) -> None:
    with pytest.raises(FieldError, match="variant: expected one of"):
        inline.figure(page(), facts, "vector")
    with pytest.raises(FieldError, match="case of vectors: expected one of"):
        inline.figure(page(), facts, "vectors", no_such_key=1)
    with pytest.raises(FieldError, match="metric: expected one of"):
        inline.figure(page(), facts, "vectors", "no_such_metric")
    with pytest.raises(FieldError, match="claim: expected one of"):
        inline.holds(facts, "vector")


def test_a_ratio_puts_the_faster_variant_first(facts: StudyFacts) -> None:
    shown = without_data(inline.ratio(page("box"), facts, "vectors", "bytewise"))
    assert ">2.0 times</a>" in shown
    shown = without_data(inline.ratio(page("box"), facts, "vectors", "bytewise", percent=True))
    assert ">100 %</a>" in shown
    with pytest.raises(FieldError, match=r"bytewise over vectors .* the faster variant first"):
        inline.ratio(page("box"), facts, "bytewise", "vectors")


def test_a_verdict_is_a_mark_a_machine_and_contradictions_stop_the_build(
    facts: StudyFacts,
) -> None:
    marks = inline.verdict(page("box"), facts, "vectors", expect="holds")
    assert marks.count(">✓</a>") == 2 and 'href="../../ledger/#copy-vectors"' in marks
    failed = changed(facts, "claims", verdict="does not hold")
    assert inline.verdict(page("box"), failed, "vectors").count(">✗</a>") == 2
    with pytest.raises(FieldError, match="verdict of vectors: expected holds"):
        inline.verdict(page("box"), failed, "vectors", expect="holds")
    assert inline.holds(facts, "vectors") == "yes" and inline.holds(failed, "vectors") == ""


def test_the_figure_of_a_claim_has_its_basis_and_leads_to_the_evidence(facts: StudyFacts) -> None:
    shown = without_data(inline.measured(page("box"), facts, "vectors"))
    assert 'href="../../ledger/#copy-vectors" title="box; 95 % interval: 2.00 to 2.00; ' in shown
    assert shown.endswith(">2.00×</a>")
