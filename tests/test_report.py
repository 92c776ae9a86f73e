"""The pages' parts, and whole sites from results that are missing, stale, skipped or refused."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from analysis import ROOT
from analysis.errors import FieldError, HotpathError
from analysis.report.differences import code_difference, fenced, setting_difference
from analysis.report.html import table
from analysis.report.inputs import Inputs, load_inputs
from analysis.report.points import Context
from analysis.report.quantities import digits, quantity, quantity_interval, ratio
from analysis.report.sentences import (
    comparison_phrase,
    order_sentences,
    reach_sentence,
    step_sentence,
)
from analysis.report.site import build_site
from analysis.report.site_pages import overview
from analysis.report.study_pages import order, published_table, sections
from analysis.results.published import best_statement, load_published, to_seconds
from analysis.results.samples import Sample
from analysis.results.store import add_run
from analysis.results.tables import write_tables
from analysis.study import Case, Study, Variant, discover
from tests.synthetic import RUN, plausible, provenance_of, samples_of, write_machine

STUDY = "h2d_gather"


def make_root(folder: Path) -> Path:
    """A copy of what the report reads of a repository, to change."""
    for name in ("kernels", "docs", "results/published"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


def make_tables(results: Path, studies: Mapping[str, Study], tables: Path) -> Path:
    """What the summary stage writes for these results."""
    write_tables(results, studies, tables)
    return tables


def make_inputs(root: Path) -> Inputs:
    studies = discover(root)
    tables = make_tables(root / "results", studies, root / "build")
    return load_inputs(tables, root / "results", root / "modules", studies)


def rows_without_value(study: Study, variant: Variant, status: str, reason: str) -> list[Sample]:
    return [
        replace(sample, value=None, verified=0, status=status, reason=reason)
        for sample in samples_of(study, variant, rounds=1)
    ]


def build(root: Path) -> Path:
    studies = discover(root)
    tables = make_tables(root / "results", studies, root / "build")
    site = root / "site"
    build_site(tables, root / "results", root / "modules", site, root)
    return site


def text_of(page: Path) -> str:
    """The page as words: no tags, white space collapsed."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.read_text()))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Context:
    root = make_root(tmp_path_factory.mktemp("measured"))
    study = discover(root)[STUDY]
    # Speeds that tell each verdict: v1 faster, v2 the same, v3 slower, v4 unclear.
    speed = dict(zip(study.variant_names, (1.0, 4.0, 4.0, 2.0, 2.0), strict=False))

    def seconds(variant: Variant, case: Case, metric: str) -> float:
        return case.payload_bytes / 1e9 / speed.get(variant.name, 9.0)

    steps = study.with_role("step")
    results = root / "results"
    write_machine(results, "box", study, variants=study.variants, seconds=seconds, noise=1e-4)
    samples = samples_of(study, steps[4], seconds=seconds, noise=0.2)
    add_run(results, "box", STUDY, steps[4].name, samples, provenance_of(study, steps[4]))
    return Context(make_inputs(root), study)


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


@pytest.mark.parametrize(
    ("verdict", "low", "value", "high", "expected"),
    [
        ("faster", 3.87, 3.91, 3.95, "is 3.91× (3.87 to 3.95) faster than `before`"),
        ("slower", 0.4, 0.5, 0.625, "it takes 2.00× (1.60 to 2.50) as long"),
        ("same", 0.998, 1.001, 1.004, "the same as `before` within 1 %: 1.001× its speed"),
        ("unclear", 0.8, 1.2, 1.5, "it is unclear how this step compares with `before`"),
        ("unclear", math.nan, 1.2, math.nan, "from a single round and so without an interval"),
    ],
)
def test_every_verdict_has_its_sentence(
    verdict: str, low: float, value: float, high: float, expected: str
) -> None:
    row = {"ratio": value, "ci_low": low, "ci_high": high, "verdict": verdict}
    assert expected in comparison_phrase(row, "before", "this step")
    of_another = comparison_phrase(row, "before", "this variant")
    assert "this variant" in of_another and "step" not in of_another


def test_sentences_follow_the_results(measured: Context) -> None:
    said = [step_sentence(measured, "box", step) for step in measured.study.with_role("step")]
    assert said[0] == ""
    for sentence, expected in zip(
        said[1:], ("faster than", "the same as", "slower than", "unclear"), strict=True
    ):
        assert expected in sentence
        assert sentence.startswith("On box ") and sentence.endswith("by device time.")
    (order,) = order_sentences(measured)
    names = measured.study.variant_names
    assert f"`{names[3]}` is slower than `{names[2]}`" in order
    assert f"From slowest to fastest they are `{names[0]}`" in order


def test_what_is_beyond_the_journey_is_no_step_of_it(tmp_path: Path) -> None:
    speeds = {"v3_loads_first": 4.0, "v3_shifted_lanes": 8.0, "ceiling_sm_copy": 8.0}
    context = measured_at(make_root(tmp_path), speeds)
    beyond, ceiling = (context.study.variant(name) for name in list(speeds)[1:])
    assert "On box this variant is 2.00×" in step_sentence(context, "box", beyond)
    assert "the fastest variant beyond the steps, `v3_shifted_lanes`" in reach_sentence(
        context, "box", ceiling
    )
    assert order_sentences(context) == []
    assert "Variants beyond the journey have no place in that order" in order(context)


def test_order_needs_no_sentence_where_steps_get_faster(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    study = discover(root)[STUDY]

    def seconds(variant: Variant, case: Case, metric: str) -> float:
        return case.payload_bytes / 1e9 / (1 + study.variant_names.index(variant.name))

    steps = study.with_role("step")
    write_machine(root / "results", "box", study, variants=steps, seconds=seconds)
    assert order_sentences(Context(make_inputs(root), study)) == []


def measured_at(root: Path, speeds: Mapping[str, float]) -> Context:
    """Nearly exact results of the variants in `speeds`, and of no other."""
    study = discover(root)[STUDY]

    def seconds(variant: Variant, case: Case, metric: str) -> float:
        return case.payload_bytes / 1e9 / speeds[variant.name]

    variants = [study.variant(name) for name in speeds]
    write_machine(root / "results", "box", study, variants=variants, seconds=seconds, noise=1e-4)
    return Context(make_inputs(root), study)


def test_an_easier_problem_is_never_the_fastest(tmp_path: Path) -> None:
    context = measured_at(
        make_root(tmp_path), {"v0_byte_copy": 1.0, "v3_loads_first": 3.0, "v3_aligned_slots": 9.0}
    )
    easier = context.study.variant("v3_aligned_slots")
    first = context.study.variant("v0_byte_copy")
    assert context.shown_case(easier) == context.shown_case(first)
    assert [step.name for step in context.contenders("box")] == ["v3_loads_first", "v0_byte_copy"]


def test_the_fastest_is_told_with_what_it_cannot_be_told_apart_from(tmp_path: Path) -> None:
    speeds = {"v1_vectorized": 2.0, "v2_warp_per_token": 4.0, "v3_loads_first": 4.001}
    context = measured_at(make_root(tmp_path), {**speeds, "ceiling_sm_copy": 8.0})
    (tie,) = context.ties("box")
    best = context.fastest("box")
    assert best is not None
    assert {best.name, tie.name} == {"v2_warp_per_token", "v3_loads_first"}
    ceiling = context.study.variant("ceiling_sm_copy")
    said = f"the fastest step, `{best.name}` (not told apart from `{tie.name}`), has 0.50"
    assert said in reach_sentence(context, "box", ceiling)
    home = overview({STUDY: context}, {})
    assert f"<code>{best.name}</code>, not told apart from <code>{tie.name}</code>" in home


def test_home_pairs_rounds_where_two_variants_are_compared(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    slow, fast = discover(root)[STUDY].with_role("step")[:2]
    context = measured_at(root, {slow.name: 1.0, fast.name: 2.0})
    # As a paired ratio may, it differs from that of the medians.
    ratios = context.inputs.ratios.assign(ratio=1.75)
    paired = Context(replace(context.inputs, ratios=ratios), context.study)
    assert '<td class="hp-number">1.75×</td>' in overview({STUDY: paired}, {})
    alone = Context(replace(context.inputs, ratios=ratios.iloc[:0]), context.study)
    assert re.search(r"2\.00× of medians</td>", overview({STUDY: alone}, {}))


def test_without_a_comparison_intervals_that_are_apart_tell(tmp_path: Path) -> None:
    context = measured_at(make_root(tmp_path), {"v1_vectorized": 2.0, "v3_loads_first": 4.0})
    slow, fast = (context.study.variant(name) for name in ("v1_vectorized", "v3_loads_first"))
    assert context.comparison("box", fast, slow) is None
    assert context.is_surely_faster("box", fast, slow)
    assert not context.is_surely_faster("box", slow, fast)
    assert context.ties("box") == []


def test_absent_results_are_said(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    study = discover(root)[STUDY]
    first, second, third, *_ = study.with_role("step")
    write_machine(root / "results", "box", study, variants=[first])
    rows = rows_without_value(study, second, "skipped", "needs a newer driver")
    add_run(root / "results", "box", STUDY, second.name, rows, provenance_of(study, second))
    context = Context(make_inputs(root), study)
    assert f"`{second.name}` was skipped: needs a newer driver" in step_sentence(
        context, "box", second
    )
    assert f"`{third.name}` has not been measured" in step_sentence(context, "box", third)


def test_sections_show_registers_and_spills(measured: Context) -> None:
    step = measured.study.with_role("step")[1].name
    resources = pd.DataFrame(
        [[STUDY, step, "sm_90", "gather", 40, 0, 8, 16, 16]],
        columns=measured.inputs.resources.columns,
    )
    context = Context(replace(measured.inputs, resources=resources), measured.study)
    assert "40 registers a thread for sm_90, 32 B of spills" in sections(context, ["step"], "../")


def test_kernels_that_differ_are_told_by_name(measured: Context) -> None:
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
        context = Context(replace(measured.inputs, resources=resources), measured.study)
        assert said in sections(context, ["step"], "../")


def test_published_table_has_printed_and_measured(measured: Context) -> None:
    page = published_table(measured)
    assert "1.97 GB/s" in page and "2.12 GB/s" in page and "box" in page


def test_published_table_leaves_out_a_machine_that_has_none_of_it(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    study = discover(root)[STUDY]
    write_machine(root / "results", "box", study, variants=study.with_role("ceiling"))
    context = Context(make_inputs(root), study)
    assert context.machines == ["box"]
    page = published_table(context)
    assert "1.97 GB/s" in page and "box" not in page


def test_a_variant_is_shown_in_a_case_it_is_usually_measured_in(measured: Context) -> None:
    for study in measured.inputs.studies.values():
        context = Context(measured.inputs, study)
        for variant in study.variants:
            usual = variant.in_grid("default")
            assert not usual or context.shown_case(variant) in usual


def test_tables_escape_what_they_are_given() -> None:
    assert "<td>&lt;b&gt;</td>" in table(["a"], [["<b>"]])


def test_pages_hold_no_measured_figure() -> None:
    figure = re.compile(r"\d[\d.,]*\s*(?:[GM]i?B/s|Gbps|[mµun]s\b|seconds|%|×|times faster)")
    for page in ROOT.glob("docs/**/*.md"):
        found = figure.findall(page.read_text())
        assert not found, f"{page.name}: {found}"


def test_site_without_results_and_with_a_study_missing(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    shutil.rmtree(root / "kernels" / "method")
    (root / "docs" / "studies" / f"{STUDY}.md").unlink()
    site = root / "site"
    build_site(root / "build", root / "results", root / "modules", site, root)
    home = text_of(site / "index.html")
    assert "No machine has been measured yet." in home
    assert discover(root)[STUDY].title in home
    assert "no study named method yet" in text_of(site / "studies" / "method" / "index.html")
    assert not (site / "studies" / STUDY).exists()
    assert (site / "data" / "summary.csv").read_text().startswith("machine,study,variant,case")


def test_site_shows_stale_skipped_failed_and_refused(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    study = discover(root)[STUDY]
    results = root / "results"
    v0, v1, v2, v3, v4 = study.with_role("step")
    write_machine(results, "whole-box", study, variants=[v0, v1, v2])
    write_machine(results, "torn-box", study, variants=[v0])
    for variant, status, reason in (
        (v3, "skipped", "needs sm_999 <or later>"),
        (v4, "failed", "illegal address"),
    ):
        rows = rows_without_value(study, variant, status, reason)
        add_run(results, "whole-box", STUDY, variant.name, rows, provenance_of(study, variant))
    with (results / "torn-box" / STUDY / f"{v0.name}.csv").open("a") as samples:
        samples.write("\n")
    v2.path.write_text(v2.path.read_text() + "\nint later_than_the_results;\n")
    site = build(root)
    home, page = (text_of(site / name) for name in ("index.html", f"studies/{STUDY}/index.html"))
    assert re.search(r"torn-box is left out: torn-box/.*expected 15 fields", home)
    assert "torn-box" not in page
    assert f"the result of {v2.name} is stale" in page
    assert "skipped: needs sm_999 &lt;or later&gt;" in page
    assert "illegal address all 16" in page
    data = pd.read_csv(site / "charts" / STUDY / "steps.csv")
    states = data[data["machine"] == "whole-box"].groupby("variant")["state"].agg(set)
    assert states[v2.name] == {"stale", "published"}
    assert states[v3.name] == {"skipped", "published"}
    assert states[v4.name] == {"failed", "published"}
    assert states["torch_index_select"] == {"not measured"}
    assert set(data.loc[data["state"] == "stale", "run"]) == {RUN}
    assert (site / "data" / "whole-box" / STUDY / f"{v0.name}.csv").exists()
    assert not (site / "data" / "torn-box").exists()


def test_a_variant_added_appears_everywhere(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    folder = root / "kernels" / STUDY
    shutil.copy(folder / "v3_loads_first.cu", folder / "v9_renamed.cu")
    entry = """
  - name: v9_renamed
    role: step
    after: v3_loads_first
    title: The same under another name
    idea: Only the name differs.
    cases: [grid]
    needs: [gpu]
"""
    description = folder / "study.yaml"
    before, variants, after = description.read_text().partition("\nvariants:")
    description.write_text(f"{before}{variants}{entry.rstrip()}{after}")
    study = discover(root)[STUDY]
    write_machine(root / "results", "box", study, seconds=plausible)
    site = build(root)
    page = (site / "studies" / STUDY / "index.html").read_text()
    assert '<h3 id="v9_renamed">' in page
    assert "On box this step is" in text_of(site / "studies" / STUDY / "index.html")
    for name in ("steps", "cases"):
        assert '"v9_renamed"' in (site / "charts" / STUDY / f"{name}.json").read_text()
        data = pd.read_csv(site / "charts" / STUDY / f"{name}.csv")
        assert "v9_renamed" in set(data["variant"])
        assert data["variant"].value_counts()["v9_renamed"] >= 16
    assert 'id="box-h2d_gather-v9_renamed"' in (site / "data" / "index.html").read_text()
    for embedded in re.findall(r'<figure class="hp-chart">.*?</figure>', page, re.DOTALL):
        assert "v9_renamed" in embedded


def test_a_page_with_an_unknown_macro_stops_the_build(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    (root / "docs" / "machines.md").write_text("# Machines\n\n{{ machine_tabel() }}\n")
    with pytest.raises(HotpathError, match="the site was not built"):
        build_site(root / "build", root / "results", root / "modules", root / "site", root)
