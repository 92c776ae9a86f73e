"""Tables about machines, of several machines and of none."""

import re
from pathlib import Path

import pytest

from analysis.site.charts.machines import ALL, machines_chart
from analysis.site.charts.theme import Chart
from analysis.site.facts.comparison import FASTER
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.page import MACROS
from tests.roots import make_inputs, make_root, settled, without_data
from tests.site.pages.conftest import page_in
from tests.synthetic import COPY, at_rates, write_machine

NAMES = ("freshness", "hosts", "machine_table", "provenance", "samples")


@pytest.fixture(scope="module")
def boxes(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    root = make_root(tmp_path_factory.mktemp("boxes"))
    for machine, rate in (("a-box", 1.0), ("b-box", 2.0)):
        speeds = at_rates({"bytewise": rate, "vectors": rate})
        write_machine(root / "results", machine, COPY, seconds=speeds, noise=1e-4)
    return settled(make_inputs(root))


@pytest.mark.parametrize("name", NAMES)
def test_machines_stand_side_by_side(boxes: Inputs, tmp_path: Path, name: str) -> None:
    shown = without_data(MACROS[name](page_in(tmp_path, boxes)))
    assert re.search("a-box.*b-box", shown, re.DOTALL)
    shown = MACROS[name](page_in(tmp_path, make_inputs(tmp_path, {"copy": COPY})))
    assert "hp-gap" in shown or "<td" not in shown.replace("<td>results folder</td>", "")


def test_rows_of_samples_lead_to_their_files_and_sources(boxes: Inputs, tmp_path: Path) -> None:
    MACROS["samples"](page_in(tmp_path, boxes))
    samples = (tmp_path / "data" / "a-box" / "copy" / "index.html").read_text()
    (row,) = re.findall(r'<tr id="a-box-copy-vectors">(.*?)</tr>', samples)
    assert re.match(r'<td><a href="\.\./\.\./\.\./evidence/copy/vectors\.html">', row)
    assert re.search(r'</td><td[^>]*><a href="[^"]+\.csv">', row)


def test_the_faster_machine_is_named_unless_its_results_are_stale(boxes: Inputs) -> None:
    def chart_of(inputs: Inputs) -> Chart | None:
        return machines_chart(inputs, [StudyFacts(inputs, COPY)])

    chart = chart_of(boxes)
    assert chart is not None
    rows = chart.table[chart.table["variant"] == "vectors"]
    rows = rows[rows["machine"] == "b-box"]
    assert {*rows["study"]} == {ALL, COPY.title}
    assert {*rows["verdict"]} == {FASTER} and {*rows["label"]} == {"2.00×"}
    summary = boxes.tables["summary"]
    stale = boxes.with_tables(summary=summary.assign(stale=(summary["machine"] == "b-box") * 1))
    assert chart_of(stale) is None


def test_a_refused_folder_is_one_line_and_its_markup_is_text(boxes: Inputs, tmp_path: Path) -> None:
    refused = boxes.without({"a-box/copy": "a *b* <c>\n{{ d }}"})
    last = MACROS["freshness"](page_in(tmp_path, refused)).splitlines()[-1]
    assert last.startswith("- **a-box/copy** is left out: a &#42;b&#42; &lt;c&gt; &#123;")
