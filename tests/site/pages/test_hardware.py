"""Pages about machines, with none, one, two and three of them, one that measured half, one whose
results are stale and one that measured another study; and what one sample changes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from analysis import ROOT
from analysis.site.charts.links import links_chart
from analysis.site.charts.machines import machines_chart
from analysis.site.charts.writing import write_chart
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.links import held_against, link_rates
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.hardware import NAMED
from analysis.site.pages.machines import described_facts
from analysis.site.pages.macros import MACROS
from analysis.site.pages.navigation import JOURNEYS
from analysis.site.pages.page import Page
from analysis.site.pages.staging import Staged
from analysis.study import Case, Variant, discover
from tests.roots import make_inputs, make_root, settled, without_data
from tests.synthetic import (
    add_run,
    at_rates,
    edit_run,
    files_of,
    make_stale,
    provenance_of,
    samples_in,
    write_machine,
)

ON_PAGES = (
    *("journeys", "findings", "other_studies", "freshness", "machine_table", "provenance"),
    *("machine_pairs", "machine_gaps", "machine_figures", "machine_differences", "machine_hosts"),
    *("machines_in_brief", "predicted_links", "stated_links"),
    *("machine_parameters", "physical_machines"),
)
"""The macros of the pages about no one study."""


def staged_of(inputs: Inputs) -> Staged:
    studies = {name: StudyFacts(inputs, study) for name, study in inputs.studies.items()}
    return Staged(inputs, {JOURNEYS: list(studies)}, studies, {}, {}, {})


def said(inputs: Inputs) -> dict[str, str]:
    """Text of each of ON_PAGES."""
    page: Any = SimpleNamespace(url="hardware/")
    around = Page(staged_of(inputs), SimpleNamespace(page=page))
    return {name: without_data(str(MACROS[name](around))) for name in ON_PAGES}


def slower(factor: float) -> Any:
    def seconds(variant: Variant, case: Case, metric: str) -> float:
        return 1e-5 + factor * case.payload_bytes / 1e9

    return seconds


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, str]]:
    """Sentences by the number of machines."""
    root = make_root(tmp_path_factory.mktemp("several"))
    study = discover(root)["copy"]
    results = root / "results"
    found = {0: said(settled(make_inputs(root)))}
    write_machine(results, "a-box", study, seconds=slower(1), grid="smoke")
    found[1] = said(settled(make_inputs(root)))
    write_machine(results, "b-box", study, seconds=slower(2), grid="smoke")
    (path,) = files_of(results, "b-box", "copy")
    edit_run(path.with_suffix(".json"), lambda run: run["host"].update(driver="600.1"))
    found[2] = said(settled(make_inputs(root)))
    write_machine(results, "c-box", study, seconds=slower(3), grid="smoke")
    found[3] = said(settled(make_inputs(root)))
    half = study.variants[: len(study.variants) // 2]
    write_machine(results, "half-box", study, variants=half, seconds=slower(1), grid="smoke")
    write_machine(results, "stale-box", study, seconds=slower(9), grid="smoke")
    for path in files_of(results, "stale-box", "copy"):
        make_stale(path)
    write_machine(results, "calls-box", discover(root)["calls"])
    found[6] = said(settled(make_inputs(root)))
    return found


def test_pages_note_that_no_machine_was_measured(several: dict[int, dict[str, str]]) -> None:
    for name in ("journeys", "machine_pairs", "machine_figures", "machine_differences"):
        assert "No machine has been measured yet." in several[0][name]
    assert "nothing can be predicted" in several[0]["predicted_links"]
    assert "PCIe 6.0 x16" in several[0]["stated_links"]


def test_one_machine_has_no_other_to_be_compared_with(several: dict[int, dict[str, str]]) -> None:
    assert several[1]["machine_pairs"].startswith("Only a-box has been measured")
    assert several[1]["machine_gaps"] == "All variants and published figures are compared."
    assert "<th" in several[1]["machine_figures"] and "a-box" in several[1]["machine_figures"]


def test_two_machines_are_compared_in_all_they_share(several: dict[int, dict[str, str]]) -> None:
    text = several[2]["machine_pairs"]
    assert "**a-box and b-box.** 14 variants ran on both. All have" in text
    rows = re.findall(r"<tr>(.*?)</tr>", text, re.DOTALL)[1:]
    assert len(rows) == NAMED
    assert all(re.search(r">a-box</td>.*>(1\.9|2\.0)\d*×</td>", row, re.DOTALL) for row in rows)
    assert re.search(r"<td>driver</td><td></td><td>600\.1</td>", several[2]["machine_differences"])
    assert "Equal on all: GPU Synthetic GPU" in several[2]["machine_differences"]
    shares = re.findall(r"· (\d+) %", several[2]["machine_figures"])
    assert shares and all(int(share) in range(95, 106) for share in shares)


def test_parameters_of_few_runs_come_with_their_number(calibrated: Inputs) -> None:
    fitted = calibrated.tables["model_parameters"]
    rows = fitted[fitted["parameter"] == "link_rate"].assign(
        value=59e9, ci_low=58e9, ci_high=60e9, runs=3
    )
    text = said(calibrated.with_tables(model_parameters=rows))["machine_parameters"]
    assert "59.0 GB/s (58.0 to 60.0 GB/s)" in text
    text = said(calibrated.with_tables(model_parameters=rows.assign(runs=1)))["machine_parameters"]
    assert "59.0 GB/s (one run)" in text and "58.0" not in text


def test_a_physical_machine_is_the_control(calibrated: Inputs) -> None:
    physical = {
        name: {**one, "hypervisor": False, "iommu": False}
        for name, one in calibrated.machines.items()
    }
    assert said(replace(calibrated, machines=physical))["physical_machines"] == (
        "Physical machines: box. Without an IOMMU: box."
    )


def test_a_refused_folder_is_one_line_and_its_markup_is_text(calibrated: Inputs) -> None:
    refused = {"<i>x</i>": "<script>hit(1)</script>: expected\nanother name"}
    text = said(replace(calibrated, refused=refused))["freshness"]
    (line,) = [line for line in text.splitlines() if "expected" in line]
    assert "is left out" in line and "another name" in line
    assert "<script" not in text and "<i>" not in text


def test_a_missing_control_comes_with_the_command_that_supplies_it(
    several: dict[int, dict[str, str]],
) -> None:
    assert "A control is missing" in several[2]["physical_machines"]
    assert "measure --config machine=my-box 'studies=[" in several[2]["physical_machines"]


def test_machine_without_a_gpu_has_no_unknown_gpu() -> None:
    facts = described_facts({"box": {"gpu": None, "host": None}})
    assert facts == {"GPU": ["none"], "host": ["unknown"]}


def test_three_machines_are_compared_in_pairs(several: dict[int, dict[str, str]]) -> None:
    text = several[3]["machine_pairs"].split('<div class="hp-pair"')[1:]
    of_14 = "14 variants ran on both. All have enough runs to compare: 14 are different."
    pairs = ("a-box and b-box", "a-box and c-box", "b-box and c-box")
    for pair, one in zip(pairs, text, strict=True):
        assert f'data-pair="{pair}"' in one and f"**{pair}.** {of_14}" in one
        assert (" hidden" in one) == (pair != pairs[0])
    assert ">3.0" in text[1] or ">2.9" in text[1]
    assert "a-box, " in several[3]["journeys"] and "b-box, " not in several[3]["journeys"]
    head = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', several[3]["machine_figures"])
    assert head == ["variant", "a-box", "b-box", "c-box"]
    assert several[3]["freshness"].count("<tr>") == 1 + 3


def test_machine_without_results_of_a_study_is_not_compared_in_it(
    several: dict[int, dict[str, str]],
) -> None:
    assert "calls-box" not in several[6]["machine_pairs"]
    apart = several[6]["machine_gaps"].partition("a-box and calls-box:")[2]
    assert "14 variants not measured on calls-box: <code>copy/" in apart
    assert " not measured on a-box: <code>calls/" in apart


def test_machines_without_a_common_variant_are_not_compared(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    for name, study in (("a-box", "copy"), ("calls-box", "calls")):
        write_machine(root / "results", name, discover(root)[study], grid="smoke")
    text = said(settled(make_inputs(root)))["machine_pairs"]
    assert text == "No variant has been measured on two machines."


def test_a_machine_that_measured_half_is_compared_in_that_and_the_rest_is_named(
    several: dict[int, dict[str, str]],
) -> None:
    assert "**a-box and half-box.** 7 variants" in several[6]["machine_pairs"]
    assert "7 variants not measured on half-box: <code>copy/" in several[6]["machine_gaps"]
    assert several[6]["machine_pairs"].count("**") == 2 * 6  # of four machines


def test_a_stale_machine_is_shown_as_such_and_not_compared(
    several: dict[int, dict[str, str]],
) -> None:
    assert "stale-box" not in several[6]["machine_pairs"]
    assert "14 variants stale on stale-box: <code>copy/" in several[6]["machine_gaps"]
    assert several[6]["machine_figures"].count("(stale)") == 14
    assert "stale" not in several[6]["journeys"], "the card shows another machine"


def test_other_links_are_predicted_from_a_calibration(calibrated: Inputs, tmp_path: Path) -> None:
    machines = {
        name: {**described, "pcie_generation": 5, "pcie_width": 16}
        for name, described in calibrated.machines.items()
    }
    studies = staged_of(replace(calibrated, machines=machines)).studies
    rates = link_rates(studies)
    assert {one.link.name for one in rates if one.is_measured} == {"pcie5_x16"}
    measured = [one for one in rates if one.is_measured and one.binding == "link"]
    assert measured and all(abs(one.measured / one.rate - 1) < 0.05 for one in measured)
    text = said(replace(calibrated, machines=machines))["predicted_links"]
    refuted = link_rates(studies, refuted=True)
    held = held_against(studies)
    gone = {(one.link.name, one.published.reads) for one in held if one.is_refuted}
    assert ("nvlink_c2c", "contiguous") in gone and {one.link.name for one in refuted} <= {
        name for name, _ in gone
    }
    assert not any(one.is_refuted for one in held if one.link.name == "pcie5_x16")
    assert "342 GB/s" in text and "refuted: left out" in text and "measured here" in text
    assert "No public figure was found for PCIe 6.0 x16" in text
    assert "PCIe 6.0 x16: not measured" in text and "PCIe 5.0 x16: measured here, on box" in text
    chart = links_chart(rates)
    assert chart is not None
    assert len(set(zip(chart.table["link"], chart.table["variant"], strict=True))) <= len(rates)
    write_chart(chart, tmp_path, "links")
    assert links_chart(link_rates(staged_of(calibrated).studies)) is None


def row_of(inputs: Inputs, folder: Path) -> pd.Series:
    """The chart's row of vectors on box against other-box."""
    chart = machines_chart(staged_of(inputs).comparison)
    assert chart is not None
    write_chart(chart, folder, "machines")
    table = chart.table
    is_row = (table["machine"] == "box") & (table["against"] == "other-box")
    (found,) = [row for _, row in table[is_row & (table["variant"] == "vectors")].iterrows()]
    return pd.Series(found)


def test_one_sample_changes_sentence_chart_card_verdict_and_comparison(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    study = discover(root)["copy"]
    steps = study.with_role("step")[:2]
    for machine, rate in (("box", 4.0), ("other-box", 2.0)):
        write_machine(
            root / "results",
            machine,
            study,
            variants=steps,
            seconds=at_rates({"vectors": rate}, other=1.0),
            rounds=2,
            noise=1e-4,
            grid="smoke",
        )
    inputs = settled(make_inputs(root))
    before, drawn = said(inputs), row_of(inputs, tmp_path)
    _, vectors = steps
    (path,) = files_of(root / "results", "box", "copy")
    samples = samples_in(path, "vectors")
    cells = [(sample.case, sample.metric) for sample in samples]
    index = cells.index((study.headline, "gpu_time"))
    samples[index] = replace(samples[index], value=(samples[index].value or 0) * 3)
    add_run(root / "results", "box", "copy", "vectors", samples, provenance_of(study, vectors))
    inputs = settled(make_inputs(root))
    after, redrawn = said(inputs), row_of(inputs, tmp_path)
    assert "4.00 GB/s</strong>" in before["journeys"] and "2.00 GB/s</strong>" in after["journeys"]
    assert "Vectors are 4.00×" in before["findings"] and "on box," in before["findings"]
    # On the other machine it is still as it was; here it has become undecided.
    assert "on other-box, " in after["findings"] and "on box" not in after["findings"]
    assert "4.00 GB/s" in before["machine_figures"]
    assert "4.00 GB/s" not in after["machine_figures"]
    assert (drawn["verdict"], redrawn["verdict"]) == ("faster", "undecided")
    assert drawn["ratio"] == pytest.approx(2, rel=0.01)
    assert redrawn["ratio"] == pytest.approx(1.1, rel=0.01)  # of geometric means
    enough = "All have enough runs to compare: "
    assert f"{enough}1 is different and 1 is equal within 5 %." in before["machine_pairs"]
    assert f"{enough}1 is equal within 5 % and 1 is undecided." in after["machine_pairs"]
    assert "<code>copy/vectors</code> is 2.00 times as fast on box." in before["machines_in_brief"]
    verdicts = inputs.tables["claims"].set_index(["claim", "machine"])["verdict"]
    assert verdicts["vectors", "box"] == "not tested"
    assert verdicts["vectors", "other-box"] == "holds"


FIGURE = re.compile(
    r"\b\d[\d.,]*\s?(?:%|×|percent\b|[kMGT]?i?B/s|[nmµu]?s\b|seconds\b|times\b|[MG]Hz\b|W\b|Gbps\b)"
)
"""A number with a unit of a measurement; sizes belong to protocols and cases."""
NOT_PROSE = re.compile(r"```.*?```|`[^`]*`|\{\{.*?\}\}", re.DOTALL)


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_no_measured_figure_is_typed_in_a_page(page: Path) -> None:
    assert FIGURE.findall(NOT_PROSE.sub("", page.read_text())) == []


def test_a_typed_figure_is_found() -> None:
    for typed in ("48.2 GB/s", "3 µs", "1.5×", "33 %", "20 times"):
        assert FIGURE.findall(f"It takes {typed} here.")
    assert not FIGURE.findall("A line has 128 bytes, a pool 40 GiB.")
