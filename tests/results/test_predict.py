"""Predictions of one machine's times from another's, and that they precede the measurement."""

from __future__ import annotations

import json
from typing import Any

import pytest

from analysis import ROOT
from analysis.results.predict import (
    LINK,
    METRIC,
    RULES,
    STUDY,
    Predicted,
    predict,
    read_predictions,
)
from analysis.results.store.keys import start_of
from analysis.results.tables.rows import RunRow, SummaryRow
from tests.repository import STUDIES

MODEL, MACHINE, RUN, MADE = "a", "b", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def summary_row(machine: str, variant: str, case: str, seconds: float) -> SummaryRow:
    values: dict[str, Any] = dict.fromkeys(SummaryRow.__dataclass_fields__, 0)
    values |= {"machine": machine, "study": STUDY, "variant": variant, "case": case}
    values |= {"metric": METRIC, "median": seconds, "by_run": f"9|{seconds}"}
    return SummaryRow(**values)


def predicted(rows: list[SummaryRow], runs: dict[str, str] | None = None) -> list[Predicted]:
    """Predictions from rows, all of run RUN if `runs` by variant do not say otherwise."""
    named = [
        RunRow(row.machine, STUDY, row.variant, row.case, (runs or {}).get(row.variant, RUN), 0)
        for row in rows
    ]
    return predict(rows, named, STUDIES[STUDY], MODEL, MACHINE, MADE, "commit")


def cells(variant: str, seconds: float) -> list[SummaryRow]:
    study = STUDIES[STUDY]
    return [summary_row(MODEL, variant, case.id, seconds) for case in study.variant(variant).cases]


def references(scale: float, large_copy_s: float = 1e-9) -> list[SummaryRow]:
    """The reference times of both machines. By default, no rate is near that of a large copy."""
    found = []
    for name, rule in RULES.items():
        seconds = large_copy_s if name == LINK else 1e-3
        for direction in ("h2d", "d2h"):
            case = rule.case.format(direction=direction)
            for machine, factor in ((MODEL, 1.0), (MACHINE, scale)):
                found.append(summary_row(machine, rule.variant, case, factor * seconds))
    return found


def test_a_time_scales_with_its_reference_in_the_same_run() -> None:
    found = predicted([*references(0.5), *cells("pinned_list_loop", 2e-3)])
    assert found and {one.rule for one in found} == {"driver"}
    assert all(one.seconds == pytest.approx(1e-3) and one.factor == 0.5 for one in found)
    assert {(one.run, one.made, one.model) for one in found} == {(RUN, MADE, MODEL)}


def test_a_time_at_the_rate_of_a_large_copy_scales_with_the_link() -> None:
    rows = [*references(0.5, large_copy_s=1e3), *cells("pinned_list_gather", 2e-3)]
    assert {one.rule for one in predicted(rows)} == {LINK}


def test_references_of_another_run_predict_nothing() -> None:
    rows = [*references(0.5), *cells("pinned_list_loop", 2e-3)]
    assert predicted(rows, {"pinned_list_loop": "2026-01-01T09:00:00Z"}) == []


def test_a_variant_that_the_machine_has_measured_is_not_predicted() -> None:
    rows = [*references(0.5), *cells("pinned_list_loop", 2e-3)]
    case = rows[-1].case
    assert predicted([*rows, summary_row(MACHINE, "pinned_list_loop", case, 1.0)]) == []


def test_the_committed_predictions_precede_every_run() -> None:
    found = read_predictions()
    assert len(found) >= 20 and {one.rule for one in found} <= set(RULES)
    runs: dict[tuple[str, ...], list[str]] = {}
    for path in (ROOT / "results").glob("*/*/*.json"):
        machine, study = path.parts[-3:-1]
        for variant in json.loads(path.read_text())["variants"]:
            runs.setdefault((machine, study, variant), []).append(start_of(path.name[:25]))
    of_predicted = [(one, runs.get((one.machine, one.study, one.variant), [])) for one in found]
    assert [one for one, starts in of_predicted if min(starts, default="z") <= one.made] == []
