"""Tables of a study's results, its sources and its claims, as its page shows them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.base.errors import FieldError
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages import tables
from analysis.site.pages.ledger import claims
from analysis.site.pages.page import MACROS
from analysis.site.pages.source import SMOKE, code_difference, setting_difference, source
from analysis.site.pages.study_pages import evidence, journeys
from tests.roots import make_inputs, make_root, rows_without_value, without_data
from tests.site.pages.conftest import page_in
from tests.synthetic import COPY, add_run, provenance_of

CELL = re.compile(r"<td[^>]*>(.*?)</td>")


def rows_of(html: str) -> list[list[str]]:
    """Cells of a table's rows, without tags."""
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", without_data(html))[1:]
    return [[re.sub("<[^>]+>", " ", cell).strip() for cell in CELL.findall(row)] for row in rows]


def test_steps_show_what_each_gains_over_the_one_before(
    measured: StudyFacts, tmp_path: Path
) -> None:
    page = page_in(tmp_path, measured.inputs, "box")
    shown = tables.steps(page, measured, changes={"vectors": "Wide `loads`."})
    rows = rows_of(shown)
    names = [variant.name for variant in measured.study.with_role("step", "beyond")]
    assert len(rows) == len(names)
    assert re.findall(r'<td><a href="#(\w+)">', shown) == names
    by_name = dict(zip(names, rows, strict=True))
    assert by_name["vectors"][1] == "Wide  loads ."
    verdicts = [row[-2] if "write-up" in shown else row[-1] for row in rows]
    assert {"✓ faster", "✗ slower", "= same", "?"} <= {*verdicts}
    assert "<caption>box; case" in shown and "3 runs, 3 hosts" in shown
    few = tables.steps(page, measured, names=["vectors"])
    assert len(rows_of(few)) == 1
    with pytest.raises(FieldError, match="variant: expected one of"):
        tables.steps(page, measured, names=["none"])


def test_a_step_of_few_runs_has_no_verdict(measured: StudyFacts, tmp_path: Path) -> None:
    few = measured.inputs.tables["ratios"].assign(by_run="2.0", runs=1, hosts=1)
    facts = replace(measured, inputs=measured.inputs.with_tables(ratios=few))
    shown = tables.steps(page_in(tmp_path, facts.inputs, "box"), facts)
    assert "faster" not in shown and "<td>?</td>" in re.sub(' data-column="[^"]*"', "", shown)


def test_a_table_is_found_by_its_name(measured: StudyFacts, tmp_path: Path) -> None:
    page = page_in(tmp_path, measured.inputs, "box")
    assert MACROS["table"](page, "steps") == tables.steps(page, measured)
    with pytest.raises(FieldError, match=r"table: expected one of .*'steps'"):
        MACROS["table"](page, "none")


def test_metrics_have_interval_runs_and_what_limits_their_trust(measured: StudyFacts) -> None:
    first, *_ = rows_of(tables.metrics(measured, "step"))
    assert first[1] == "box" and "3 runs, 3 hosts" in first
    summary = measured.inputs.tables["summary"]
    doubtful = summary.assign(stale=1, verified=0, apart=1, throttled=0.5, disturbed=2)
    facts = replace(measured, inputs=measured.inputs.with_tables(summary=doubtful))
    notes = rows_of(tables.metrics(facts, "step"))[0][-1]
    assert notes.startswith("stale, not verified, 1 of 3 runs outside")
    assert "throttled in 50 % of samples" in notes and "disturbed in 2 of" in notes


def test_rates_need_keys_that_keep_the_payload(measured: StudyFacts) -> None:
    key, *_ = measured.study.case_keys
    with pytest.raises(FieldError, match="expected keys that do not change the payload"):
        tables.rates(measured, "vectors", key, key)
    with pytest.raises(FieldError, match="case key: expected one of"):
        tables.rates(measured, "vectors", "none", key)


def test_printed_figures_stand_beside_measured_ones(measured: StudyFacts) -> None:
    shown = tables.published(measured)
    assert ">as printed</th>" in shown and ">box</th>" in shown


def test_missing_results_have_a_reason(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    step = COPY.with_role("step")[0]
    rows = rows_without_value(COPY, step, "skipped", "needs sm_999 <or later>")
    add_run(root / "results", "box", "copy", step.name, rows, provenance_of(COPY, step))
    shown = tables.missing(StudyFacts(make_inputs(root), COPY))
    assert ["box", "results", "skipped: needs sm_999 &lt;or later&gt;", "all", step.name] in [
        [cell.strip() for cell in row] for row in rows_of(shown)
    ]


def test_a_source_is_folded_with_all_that_explains_its_figure(
    measured: StudyFacts, tmp_path: Path
) -> None:
    page = page_in(tmp_path, measured.inputs)
    shown = source(measured, page.place)
    for variant in measured.study.variants:
        assert f' id="{variant.name}"' in shown
        text = (tmp_path / "evidence" / "copy" / f"{variant.name}.html").read_text()
        assert f"<code data-copy>snakemake --cores 8 -f build/measured/copy/{variant.name}" in text
        assert "Figures</h2>" in text and f"Source: {variant.path.name}</h2>" in text
        difference = code_difference(measured.study, variant)
        assert (f"Difference from {variant.after}</h2>" in text) == bool(difference)
    assert " id=" not in source(measured, page.place, "vectors")
    with pytest.raises(FieldError, match="variant: expected one of"):
        source(measured, page.place, "none")
    smoke = replace(measured, inputs=replace(measured.inputs, results=SMOKE / "results"))
    source(smoke, page.place, "vectors")
    text = (tmp_path / "evidence" / "copy" / "vectors.html").read_text()
    assert "snakemake --cores 8 --config grid=smoke -f build/smoke/measured/copy/vectors" in text


def test_difference_in_settings_alone(measured: StudyFacts) -> None:
    study = measured.study
    variant = study.variant("vectors")
    same = replace(variant, path=study.variant(str(variant.after)).path)
    assert code_difference(study, same) == ""
    before = study.variant(str(variant.after))
    changed = replace(variant, options={**before.options, "block": "64"}, constants={})
    assert setting_difference(study, changed)[-1].startswith("`block = 64` instead of `")
    alike = replace(variant, options=before.options, constants=before.constants, flags=before.flags)
    assert setting_difference(study, alike) == []


def test_claims_are_lines_with_their_verdicts(measured: StudyFacts, tmp_path: Path) -> None:
    place = page_in(tmp_path, measured.inputs).place
    shown = claims(measured, place)
    assert [f' id="copy-{claim.id}"' in shown for claim in measured.study.claims]
    assert 'hp-verdict hp-holds">holds</span> box: ' in without_data(shown)
    assert 'hp-verdict">not tested</span>' in shown
    assert claims(measured, place, "vectors").count("<details") == 1
    text = (tmp_path / "evidence" / "copy" / "claims" / "vectors.html").read_text()
    assert ">samples</th>" in text and "#box-copy-vectors" in text
    with pytest.raises(FieldError, match="claim: expected one of"):
        claims(measured, place, "none")
    undecided = measured.inputs.tables["claims"].assign(verdict="not tested", judged=1.0)
    facts = replace(measured, inputs=measured.inputs.with_tables(claims=undecided))
    assert 'hp-verdict">undecided</span> box' in claims(facts, place, "vectors")


def test_evidence_and_journeys_name_every_part(measured: StudyFacts, tmp_path: Path) -> None:
    page = page_in(tmp_path, measured.inputs, "box")
    shown = evidence(page, measured, tables=["metrics"])
    for anchor in ("claims", "as-published", "charts-and-tables", "sources"):
        assert f"{{: #{anchor} .fold }}" in shown
    (row,) = rows_of(journeys(page, "copy"))
    assert row[0] == measured.study.title and row[3].endswith("×")


def test_no_results_are_no_tables(tmp_path: Path, measured: StudyFacts) -> None:
    empty = make_inputs(tmp_path, measured.inputs.studies)
    facts = StudyFacts(empty, measured.study)
    with pytest.raises(FieldError, match="expected a figure of any step on any machine"):
        tables.steps(page_in(tmp_path, empty, "box"), facts)
    assert "hp-gap" in tables.steps(page_in(tmp_path, empty), facts)
