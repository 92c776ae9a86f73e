"""The model on pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from analysis import ROOT
from analysis.base.errors import FieldError
from analysis.base.quantities import signed_percent
from analysis.results.model.judge import USES, judged
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.model import (
    counter_table,
    judgement,
    misses,
    model_basis,
    model_table,
    parameter_table,
    rate_table,
    unjudged,
)
from analysis.site.pages.site import build_site
from tests.linked import CALIBRATION, GATHER, model_root, true_seconds
from tests.roots import drawn_charts, make_inputs, text_of, without_data
from tests.synthetic import write_machine


def test_without_calibration_pages_note_the_missing_prediction(tmp_path: Path) -> None:
    root = model_root(tmp_path)
    write_machine(root / "results", "box", GATHER, seconds=true_seconds)
    found = make_inputs(root)
    assert (
        found.tables["model"].empty
        and found.tables["model_parameters"].empty
        and found.tables["model_counters"].empty
    )
    facts = StudyFacts(found, GATHER)
    assert "model" not in drawn_charts(facts)
    assert "No machine has been calibrated" in model_table(facts)
    assert "No machine has been calibrated" in parameter_table(found)
    assert "None of the predicted counters" in counter_table(facts)


def test_worst_point_is_one_of_the_judged(calibrated: Inputs) -> None:
    page = judgement(StudyFacts(calibrated, GATHER))
    assert ">worst judged</th>" in page and ">worst</th>" not in page


def test_interpolated_and_extrapolated_points_are_counted_separately(calibrated: Inputs) -> None:
    page = judgement(StudyFacts(calibrated, CALIBRATION))
    uses = [use for use in USES if f">{use}<" in page]
    assert uses == ["fitted", "interpolated", "extrapolated"]


def test_unjudged_points_have_a_reason(calibrated: Inputs) -> None:
    rows = re.findall(r"<tr>(.*?)</tr>", unjudged(StudyFacts(calibrated, GATHER)), re.DOTALL)
    words = [re.sub(r"(\s*<[^>]*>)+\s*", "|", row).strip("|") for row in rows[1:]]
    by_variant = {row.split("|")[0]: row.split("|", 1)[1] for row in words}
    managed = "every machine|none|the model has no description of its reads"
    assert by_variant["managed"] == managed
    assert by_variant["batch_memcpy"].startswith("every machine|none|the CPU takes part")
    assert by_variant["v0_byte_copy"] == "box|0 of 16|bound by request rate in 16"
    assert "v3_loads_first_again" not in by_variant
    counts = [row.split("|")[2] for row in words]
    assert counts == sorted(counts, key=lambda count: not count.startswith(("none", "0 ")))


def test_points_beyond_the_tolerance_are_listed_worst_first(calibrated: Inputs) -> None:
    table = calibrated.tables["model"].copy()
    judged_rows = table.index[(table["study"] == GATHER.name) & judged(table)]
    for residuals, listed in (([0.0, 0.0, 0.0], []), ([0.04, -0.2, 0.029], ["-20.0 %", "+4.0 %"])):
        table.loc[judged_rows, "residual"] = [*residuals, *[0.0] * (len(judged_rows) - 3)]
        page = misses(StudyFacts(calibrated.with_tables(model=table), GATHER))
        assert re.findall(r"[+-][\d.]+ %", page) == listed


def test_rates_that_were_not_measured_are_predicted_and_marked(calibrated: Inputs) -> None:
    facts = StudyFacts(calibrated, CALIBRATION)
    page = rate_table(facts, "sm_rows", "stride_bytes", "offset_bytes", 0, 1024, 1536)
    lines = without_data(page).split("<tr>")[2:]
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", line) for line in lines]
    marked = [[cell.startswith("≈") for cell in row[1:]] for row in rows]
    assert marked == [[False] + [True] * 7, [False] * 8, [True] * 8]
    rates = [[float(cell.removeprefix("≈ ")) for cell in row[1:]] for row in rows]
    assert rates[2] == pytest.approx(rates[1], rel=0.05)  # 1,024 and 1,536 are whole lines


def test_a_table_of_rates_takes_keys_of_the_case_that_leave_its_payload(calibrated: Inputs) -> None:
    facts = StudyFacts(calibrated, CALIBRATION)
    with pytest.raises(FieldError, match="case key: expected"):
        rate_table(facts, "sm_rows", "colour", "offset_bytes", 1)
    with pytest.raises(FieldError, match="do not change the payload"):
        rate_table(facts, "sm_rows", "row_bytes", "offset_bytes", 512)


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "studies").glob("*.md")), ids=str)
def test_unjudged_points_come_before_judged_ones(page: Path) -> None:
    calls = re.findall(r"{{ (unjudged|predictions|judgement)\(\) }}", page.read_text())
    assert not calls or calls[0] == "unjudged"


def test_a_parameter_has_the_number_of_its_cases_and_runs(calibrated: Inputs) -> None:
    assert ">101 cases, 1 run<" in parameter_table(calibrated)
    assert model_basis(calibrated) == "model fitted to 101 cases of 1 run on box"


def test_counters_are_shown_beside_predictions(calibrated: Inputs) -> None:
    page = counter_table(StudyFacts(calibrated, GATHER))
    nearest, every = page.split("<details", 1)
    rows = StudyFacts(calibrated, GATHER).predicted_counters
    names = {row.metric for row in rows}
    assert all(nearest.count(f"<code>{name}</code>") == 1 for name in names)
    furthest = max(rows, key=lambda row: abs(row.residual))
    assert f">{furthest.variant} {furthest.case}</td>" in nearest
    assert signed_percent(furthest.residual) in nearest
    # Values that all rows of a machine share appear once.
    assert every.count(GATHER.headline) == every.count("<table") == 1
    assert every.count("<tr>") == len(rows) + 1


@pytest.mark.long  # builds a whole site; other tests see each table and chart of the model
def test_pages_show_the_model(calibrated: Inputs, calibrated_root: Path) -> None:
    root = calibrated_root  # with the tables that `calibrated` was read from
    site = root / "site"
    build_site(root / "build", root / "results", site, root)
    gather = text_of(site / "studies" / GATHER.name / "index.html")
    assert "ratio to the next term" in gather and "counted vs. predicted" in gather
    calibration = text_of(site / "studies" / CALIBRATION.name / "index.html")
    assert "effective rate of the link" in calibration
    assert "within 3 %" in calibration
    for study in (GATHER, CALIBRATION):
        assert "model" in drawn_charts(StudyFacts(calibrated, study))
