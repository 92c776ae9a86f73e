"""Tables about machines, the method and the link model, of several machines and of none."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.site.facts.comparison import Comparison
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages import machines, method, model
from analysis.site.pages.machines import described_facts
from analysis.site.pages.page import MACROS
from tests.linked import GATHER
from tests.roots import make_inputs, make_root, settled, without_data
from tests.site.pages.conftest import page_in
from tests.synthetic import COPY, at_rates, write_machine

ON_PAGES = (
    *("freshness", "machine_table", "provenance", "machine_pairs", "machine_figures"),
    *("machine_hosts", "samples", "measuring", "repeatability", "agreement", "link_parameters"),
)
"""Macros about all machines."""


@pytest.fixture(scope="module")
def boxes(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    root = make_root(tmp_path_factory.mktemp("boxes"))
    for machine, rate in (("a-box", 1.0), ("b-box", 2.0)):
        speeds = at_rates({"bytewise": rate, "vectors": rate})
        write_machine(root / "results", machine, COPY, seconds=speeds, noise=1e-4)
    return settled(make_inputs(root))


def test_machines_stand_side_by_side(boxes: Inputs, tmp_path: Path) -> None:
    page = page_in(tmp_path, boxes)
    said = {name: without_data(str(MACROS[name](page))) for name in ON_PAGES}
    for name in ("freshness", "machine_table", "provenance", "machine_hosts", "machine_figures"):
        assert "a-box" in said[name] and "b-box" in said[name], name
    assert 'data-pair="a-box and b-box"' in said["machine_pairs"]
    assert "different: b-box is faster" in said["machine_pairs"]
    assert "2.00×" in said["machine_pairs"]
    samples = (tmp_path / "data" / "a-box" / "copy" / "index.html").read_text()
    assert 'id="a-box-copy-vectors"' in samples
    assert re.search(r'<td[^>]*><a href="[^"]+\.csv">', samples)


def test_a_stale_machine_is_not_compared(boxes: Inputs) -> None:
    summary = boxes.tables["summary"]
    stale = boxes.with_tables(summary=summary.assign(stale=(summary["machine"] == "b-box") * 1))
    studies = {"copy": StudyFacts(stale, COPY)}
    assert machines.pairs(Comparison(stale, studies)) == ""
    assert "(stale)" in machines.figures_table(Comparison(stale, studies))


def test_a_site_without_results_has_no_table(tmp_path: Path) -> None:
    page = page_in(tmp_path, make_inputs(tmp_path, {"copy": COPY}))
    for name in ON_PAGES:
        shown = MACROS[name](page)
        assert "hp-gap" in shown or "<td" not in shown.replace("<td>results folder</td>", ""), name


def test_a_refused_folder_is_one_line_and_its_markup_is_text(boxes: Inputs) -> None:
    refused = boxes.without({"a-box/copy": "a *b* <c>\n{{ d }}"})
    last = machines.freshness(refused).splitlines()[-1]
    assert last.startswith("- **a-box/copy** is left out: a &#42;b&#42; &lt;c&gt; &#123;")


def test_facts_of_hosts_are_in_the_words_of_the_field() -> None:
    described = {"box": {"gpu": None, "gpu_memory_bytes": 2**31, "ecc": True, "power_w": 7.0}}
    assert described_facts(described) == {
        "GPU": ["none"],
        "GPU memory": ["2.0 GiB"],
        "ECC": ["yes"],
        "power": ["7 W"],
    }


def test_the_model_has_its_parameters_errors_and_misses(calibrated: Inputs) -> None:
    facts = StudyFacts(calibrated, GATHER)
    shown: dict[str, Callable[[], str]] = {
        "parameter": lambda: model.parameters(calibrated),
        "judged": lambda: model.judgement(facts),
        "measured vs. predicted": lambda: model.predictions(facts),
        "reason": lambda: model.unjudged(facts),
    }
    for column, make in shown.items():
        assert f">{column}</th>" in make(), column
    assert model.model_basis(calibrated).startswith("model fitted to ")


def test_examples_of_intervals() -> None:
    assert method.interval("COUNT", [8], [8], [8]) == "8.00"
    assert method.interval("COUNT", [0], [2], [1]).startswith("0 to ")


def test_reach_is_shown_beside_the_study(boxes: Inputs) -> None:
    assert method.reach_source().startswith("``` cuda\n")
    assert method.reach_example().startswith("``` text\n")
