"""Named properties: that their cells exist, what follows from several figures, and decisions."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from analysis.base.equivalence import EQUAL, FEW_RUNS
from analysis.results.model.translation import ENTRY_BYTES
from analysis.site.facts import properties
from analysis.site.facts.comparison import Comparison, Subject
from analysis.site.facts.datasheets import (
    CHIP,
    DATASHEETS,
    HOST,
    LINK,
    MEMORY,
    SOFTWARE,
    expectation,
)
from analysis.site.facts.properties import (
    PIECES,
    PROPERTIES,
    REACH_COUNTS,
    Cell,
    Property,
    _crossover,
    _reach_bytes,
    compare_properties,
)
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.properties import in_brief, machine_properties
from analysis.study import discover
from tests.repository import STUDIES
from tests.roots import make_inputs, make_root
from tests.synthetic import write_machine

BOX, OTHER = (Subject(name, "machine", name) for name in ("box", "other-box"))


def test_every_property_has_existing_cells() -> None:
    for of in PROPERTIES:
        for cell in of.cells:
            study = STUDIES[cell.study]
            assert (cell.variant, cell.case) in study.payloads, of.name
            assert cell.metric in study.metrics, of.name
        assert of.value or len(of.cells) == 1, of.name
    assert len({of.name for of in PROPERTIES}) == len({of.title for of in PROPERTIES})


def test_the_reach_follows_from_two_times() -> None:
    held, walk = 9000, 2e-8
    times = [walk * (1 - held / count) for count in REACH_COUNTS]
    assert _reach_bytes(*times) == pytest.approx(held * ENTRY_BYTES)


def test_a_crossover_lies_where_the_lines_cross() -> None:
    middle = math.sqrt(PIECES[0] * PIECES[1])
    assert _crossover(1.0, 2.0, 2.0, 1.0) == pytest.approx(middle)
    assert math.isnan(_crossover(1.0, 1.0, 2.0, 2.0))


def test_datasheets_expect_equal_links_and_faster_memory() -> None:
    one, other = (
        {"gpu": gpu, "arch": "sm_90", "sms": 132, "pcie_generation": 5, "pcie_width": 16}
        for gpu in DATASHEETS
    )
    assert expectation(LINK, one, other).ratio == expectation(CHIP, one, other).ratio == 1
    assert expectation(SOFTWARE, one, other).ratio == 1
    assert expectation(MEMORY, one, other).ratio == pytest.approx(4.8 / 3.35)
    assert math.isnan(expectation(HOST, one, other).ratio)
    assert expectation(LINK, one, {**other, "pcie_generation": 4}).reason == ""
    assert expectation(MEMORY, one, {**other, "gpu": "unknown"}).reason == ""
    assert expectation(CHIP, {}, {}).reason == ""


def compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Comparison:
    """Two equal machines, and one property of the study `copy`."""
    root = make_root(tmp_path)
    study = discover(root)["copy"]
    variant = study.with_role("step")[0]
    cell = Cell("copy", variant.name, study.shown_case(variant).id)
    of = Property("rate", "rate of a copy", LINK, "B/s", (cell,))
    gone = Property("gone", "a study that is gone", LINK, "s", (Cell("none", "none", "n=1"),))
    monkeypatch.setattr(properties, "PROPERTIES", (of, gone))
    for name in ("box", "other-box"):
        write_machine(root / "results", name, study, grid="smoke", noise=1e-4)
    inputs = make_inputs(root)
    return Comparison(inputs, {"copy": StudyFacts(inputs, inputs.studies["copy"])})


def test_a_property_with_one_run_is_not_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparison = compared(tmp_path, monkeypatch)
    (one,) = compare_properties(comparison, BOX, OTHER)
    assert one.decided.decision == FEW_RUNS
    assert "no property has enough runs" in machine_properties(comparison)
    assert in_brief(comparison) == ""


def test_equal_machines_with_enough_runs_are_shown_equal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparison = compared(tmp_path, monkeypatch)
    summary = comparison.inputs.tables["summary"]
    by_run = [
        "|".join(str(one * share) for share in (1, 1.001, 0.999)) for one in summary["median"]
    ]
    summary = summary.assign(by_run=by_run, runs=3, hosts=3)
    inputs = comparison.inputs.with_tables(summary=summary)
    comparison = Comparison(inputs, {"copy": StudyFacts(inputs, inputs.studies["copy"])})
    (one,) = compare_properties(comparison, BOX, OTHER)
    assert one.decided.decision == EQUAL
    text = machine_properties(comparison)
    assert "0 of 1 properties differ, 1 are equal within 5 %" in text
    assert "rate of a copy" in text
    brief = in_brief(comparison)
    assert brief.startswith("Of 1 tested property of box and other-box, none differs, 1 is equal")


def test_machines_without_a_common_property_are_not_compared(tmp_path: Path) -> None:
    inputs = make_inputs(make_root(tmp_path))
    assert machine_properties(Comparison(inputs, {})) == (
        "No two machines have a property in common yet."
    )
