"""Tables of a study's results, its sources and its claims, as its page shows them."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.ledger import claims
from analysis.site.pages.page import MACROS, Page
from analysis.site.pages.source import code_difference, setting_difference, source
from tests.roots import without_data
from tests.site.pages.conftest import page_in

CELL = re.compile(r"<td[^>]*>(.*?)</td>")


def rows_of(html: str) -> list[list[str]]:
    """Cells of a table's rows, without tags."""
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", without_data(html))[1:]
    return [[re.sub("<[^>]+>", " ", cell).strip() for cell in CELL.findall(row)] for row in rows]


def changed(measured: StudyFacts, site: Path, table: str, **columns: Any) -> Page:
    """The page with other values in some columns of a table."""
    made = measured.inputs.tables[table].assign(**columns)
    return page_in(site, measured.inputs.with_tables(**{table: made}), "box")


def test_steps_show_the_gain_over_the_previous_one(measured: StudyFacts, tmp_path: Path) -> None:
    page = page_in(tmp_path, measured.inputs, "box")
    shown = MACROS["table"](page, "steps")
    rows = rows_of(shown)
    names = [variant.name for variant in measured.study.with_role("step", "beyond")]
    assert re.findall(r'<td><a href="#(\w+)">', shown) == names
    assert rows[names.index("vectors")][1] == measured.study.variant("vectors").idea
    found = [row[-2] if "write-up" in shown else row[-1] for row in rows]
    words = {cell.split("×")[-1].split("  ")[0].strip() for cell in found}
    assert {"faster", "slower", "same", "faster, unclear"} <= words
    # A number says how many times: none is below 1.
    assert all(float(cell.split("×")[0]) >= 1 for cell in found if "×" in cell)
    assert "<caption>box; case" in shown and "3 runs, 3 hosts" in shown


def test_contradicted_speed_ups_have_figures_of_one_run(
    measured: StudyFacts, tmp_path: Path
) -> None:
    summary = measured.inputs.tables["summary"]
    medians = summary["median"].where(summary["variant"] != "vectors", 8 * summary["median"])
    others = [
        MACROS["table"](page, "steps")
        for page in (
            page_in(tmp_path, measured.inputs, "box"),
            changed(measured, tmp_path, "summary", median=medians),
        )
    ]
    place = [variant.name for variant in measured.study.with_role("step", "beyond")]
    usual, contradicted = (" ".join(rows_of(shown)[place.index("vectors")]) for shown in others)
    assert "in one run" not in usual
    assert re.search(r"4\.00× faster.*in one run: 1\.0+ GB/s → 4\.00 GB/s", contradicted)


def test_a_step_of_few_runs_has_no_verdict(measured: StudyFacts, tmp_path: Path) -> None:
    few = changed(measured, tmp_path, "ratios", by_run="2.0", runs=1, hosts=1)
    shown = MACROS["table"](few, "steps")
    assert shown.count("unclear") == shown.count("faster") + shown.count("slower") > 0


def test_metrics_have_intervals_runs_and_doubts(measured: StudyFacts, tmp_path: Path) -> None:
    first, *_ = rows_of(MACROS["metrics"](page_in(tmp_path, measured.inputs), "step"))
    assert first[1] == "box" and "3 runs, 3 hosts" in first
    doubts = {"stale": 1, "verified": 0, "apart": 1, "throttled": 0.5, "disturbed": 2}
    notes = rows_of(MACROS["metrics"](changed(measured, tmp_path, "summary", **doubts)))[0][-1]
    assert notes.startswith("stale, not verified, 1 of 3 runs outside")
    assert "throttled in 50 % of samples" in notes and "disturbed in 2 of" in notes


def test_a_source_is_folded_with_its_figures(measured: StudyFacts, tmp_path: Path) -> None:
    page = page_in(tmp_path, measured.inputs)
    shown = source(page)
    for variant in measured.study.variants:
        assert f' id="{variant.name}"' in shown
        text = (tmp_path / "evidence" / "copy" / f"{variant.name}.html").read_text()
        command = f"snakemake --cores 8 -f build/measured/copy/{variant.name}"
        assert f'<code data-copy="">{command}' in text
        assert "Figures</h2>" in text and f"Source: {variant.path.name}</h2>" in text
        difference = code_difference(measured.study, variant)
        assert (f"Difference from {variant.after}</h2>" in text) == bool(difference)


def test_difference_in_settings_alone(measured: StudyFacts) -> None:
    study, variant = measured.study, measured.study.variant("vectors")
    before = study.variant(str(variant.after))
    assert code_difference(study, replace(variant, path=before.path)) == ""
    alike = replace(variant, options=before.options, constants=before.constants, flags=before.flags)
    assert setting_difference(study, alike) == []
    changed = replace(alike, options={**before.options, "block": "64"})
    assert setting_difference(study, changed) == ["`block = 64` instead of `unset`"]


def test_claims_are_lines_with_their_verdicts(measured: StudyFacts, tmp_path: Path) -> None:
    page = page_in(tmp_path, measured.inputs)
    shown = claims(page)
    assert all(f' id="copy-{claim.id}"' in shown for claim in measured.study.claims)
    assert 'hp-verdict hp-holds">holds</span> box: ' in shown
    assert 'hp-verdict">not tested</span>' in shown
    text = (tmp_path / "evidence" / "copy" / "claims" / "vectors.html").read_text()
    assert ">samples</th>" in text and "#box-copy-vectors" in text
    undecided = changed(measured, tmp_path, "claims", verdict="not tested", judged=1.0)
    assert 'hp-verdict">undecided</span> box' in claims(undecided)


def test_evidence_and_journeys_name_every_part(measured: StudyFacts, tmp_path: Path) -> None:
    page = page_in(tmp_path, measured.inputs, "box")
    shown = MACROS["evidence"](page)
    for anchor in ("claims", "as-published", "sources"):
        assert f"{{: #{anchor} .fold }}" in shown
    assert ">as printed</th>" in shown and ">box</th>" in shown
    (row,) = rows_of(MACROS["journeys"](page, "copy"))
    assert row[0].startswith(measured.study.title) and row[3].endswith("× faster")


def test_goals_that_answers_miss_are_named(measured: StudyFacts, tmp_path: Path) -> None:
    scores = {"way": "90 %", "worst": "1.20×", "time": ""}
    row = {"question": "pieces", "machine": "box", "by": "these answers", "cells": "48", **scores}
    rows = [row, {**row, "by": "fixed thresholds", "worst": "9×"}]
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "pieces.form.json").write_text(json.dumps({"quality": rows}))
    shown = MACROS["answer_quality"](page_in(tmp_path, measured.inputs), "copy")
    assert shown.endswith("<p>Missed goals: pieces on box, 90 % of 48 ways.</p>")
