"""What pages are made of: differences, quantities, tables, sections of variants."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from markupsafe import Markup

from analysis import ROOT
from analysis.errors import FieldError
from analysis.facts.study_facts import StudyFacts
from analysis.quantities import digits, quantity, quantity_interval, ratio
from analysis.report.differences import code_difference, fenced, setting_difference
from analysis.report.html import code, figure, joined, table
from analysis.report.study_pages import published_table
from analysis.report.variants import sections
from analysis.store.published import best_statement, load_published, to_seconds
from analysis.study import discover
from tests.report.roots import (
    STUDY,
    make_inputs,
    make_root,
)
from tests.synthetic import write_machine


def test_difference_shows_the_step_and_nothing_of_the_first() -> None:
    study = discover()[STUDY]
    first, second = study.with_role("step")[:2]
    difference = code_difference(study, second)
    assert difference.startswith(f"--- {first.path.name}\n+++ {second.path.name}\n@@")
    changed = [line for line in difference.splitlines()[2:] if line[0] in "+-"]
    assert changed
    assert all(line[1:] in second.path.read_text() for line in changed if line[0] == "+")
    assert code_difference(study, first) == ""
    assert setting_difference(study, first) == []


def test_difference_in_settings_alone() -> None:
    study = discover()[STUDY]
    second = study.with_role("step")[1]
    changed = replace(second, flags=("-maxrregcount=32",), constants={"token_bytes": 640})
    assert setting_difference(study, changed) == [
        "flags `-maxrregcount=32`",
        "`token_bytes = 640` instead of `656`",
    ]


def test_only_one_program_listed_twice_is_a_repeat() -> None:
    study = discover()["method"]
    repeat = next(variant for variant in study.variants if variant.after)
    assert study.is_repeat(repeat)
    assert not study.is_repeat(replace(repeat, flags=("-O1",)))
    assert not study.is_repeat(study.variant(str(repeat.after)))


def test_fence_is_longer_than_what_it_holds() -> None:
    assert fenced("a\n```\nb", "cpp").startswith("```` cpp\n")
    assert fenced("a\n\nb", "cpp", indent=4) == "    ``` cpp\n    a\n\n    b\n    ```"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (3.5921e-3, "s", "3.592 ms"),
        (2.5e-8, "s", "25.00 ns"),
        (2.5e-6, "s", "2.500 µs"),
        (132.0, "1", "132"),
        (1.0991142, "1", "1.099"),
        (4.7e10, "B/s", "47.0 GB/s"),
        (math.nan, "s", ""),
    ],
)
def test_quantities_carry_a_prefix(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


def test_intervals_share_a_prefix() -> None:
    assert quantity_interval(0.999e-3, 1.002e-3, "s") == "0.9990 to 1.002 ms"
    assert quantity_interval(math.nan, 1.0, "s") == ""
    assert (digits(0), digits(47.92), ratio(1.003), ratio(3.912)) == (
        "0",
        "47.9",
        "1.003×",
        "3.91×",
    )


def test_published_units_become_seconds() -> None:
    payload = 2**30
    assert to_seconds(81.3025, "ms", 0, "here") == pytest.approx(0.0813025)
    assert to_seconds(2.0, "GiB/s", payload, "here") == pytest.approx(0.5)
    assert to_seconds(1.0, "GB/s", 10**9, "here") == pytest.approx(1.0)
    assert to_seconds(8.0, "Gbps", 10**9, "here") == pytest.approx(1.0)
    assert math.isnan(to_seconds(2.0, "GiB/s", 0, "here"))
    with pytest.raises(FieldError, match=r"unit_meant: expected one of .* got 'furlong'"):
        to_seconds(1.0, "furlong", 0, "unit_meant")


def test_published_time_and_rate_say_the_same() -> None:
    published = load_published(ROOT / "results", discover()[STUDY])
    for _, both in published.groupby("variant"):
        seconds = both["seconds"].to_numpy()
        assert seconds.max() / seconds.min() < 1.01
    best = best_statement(published)
    assert set(best["unit_meant"]) == {"ms"}
    assert (best["rate"] * best["seconds"] * 1e9).to_numpy() == pytest.approx(
        best["payload_bytes"].to_numpy(dtype=float)
    )


def test_sections_show_registers_and_spills(measured: StudyFacts) -> None:
    step = measured.study.with_role("step")[1].name
    resources = pd.DataFrame(
        [[STUDY, step, "sm_90", "gather", 40, 0, 8, 16, 16]],
        columns=measured.inputs.resources.columns,
    )
    facts = StudyFacts(replace(measured.inputs, resources=resources), measured.study)
    assert "40 registers a thread for sm_90, 32 B of spills" in sections(facts, ["step"], "../")


def test_kernels_that_differ_are_told_by_name(measured: StudyFacts) -> None:
    step = measured.study.with_role("step")[1].name
    rows = [
        [STUDY, step, "sm_90", symbol, registers, 0, 0, 0, 0]
        for symbol, registers in (("_Z4copyILi1EEvv", 40), ("_Z4copyILi2EEvv", 40), ("fill", 8))
    ]
    columns = measured.inputs.resources.columns
    for shown, said in (
        (rows[:2], "Compiled: 40 registers a thread for sm_90, no spills."),
        (rows, "Compiled: `copy<1>` and `copy<2>` with 40 registers a thread"),
    ):
        resources = pd.DataFrame(shown, columns=columns)
        facts = StudyFacts(replace(measured.inputs, resources=resources), measured.study)
        assert said in sections(facts, ["step"], "../")


def test_published_table_has_printed_and_measured(measured: StudyFacts) -> None:
    page = published_table(measured)
    assert "1.97 GB/s" in page and "2.12 GB/s" in page and "box" in page


def test_published_table_leaves_out_a_machine_that_has_none_of_it(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    study = discover(root)[STUDY]
    write_machine(root / "results", "box", study, variants=study.with_role("ceiling"))
    facts = StudyFacts(make_inputs(root), study)
    assert facts.machines == ["box"]
    page = published_table(facts)
    assert "1.97 GB/s" in page and "box" not in page


def test_a_variant_is_shown_in_a_case_it_is_usually_measured_in(measured: StudyFacts) -> None:
    for study in measured.inputs.studies.values():
        facts = StudyFacts(measured.inputs, study)
        for variant in study.variants:
            usual = variant.in_grid("default")
            assert not usual or facts.figures.shown_case(variant) in usual


def test_tables_escape_what_they_are_given() -> None:
    assert "<td>&lt;b&gt;</td>" in table(["a"], [["<b>"]])
    assert '<th scope="col">&lt;a&gt;</th>' in table(["<a>"], [])
    assert "<td><code>&lt;b&gt;</code></td>" in table(["a"], [[code("<b>")]])
    assert "<caption>1 &lt; 2</caption>" in table(["a"], [], caption="1 < 2")
    assert ' id="a&#34;b"' in table(["a"], [["b"]], ids=['a"b'])


def test_what_is_joined_is_escaped_once() -> None:
    assert joined("<br>", ["<a>", code("&")]) == "&lt;a&gt;<br><code>&amp;</code>"
    assert joined(", ", []) == ""


def test_a_chart_keeps_what_its_description_says() -> None:
    shown = figure("s.json", "../", 'a "b" <c>', "d & e", "s.csv", Markup("<table></table>"))
    assert 'aria-label="a &#34;b&#34; &lt;c&gt;"' in shown
    assert "<figcaption>d &amp; e</figcaption>" in shown
    assert "</p><table></table></details>" in shown
