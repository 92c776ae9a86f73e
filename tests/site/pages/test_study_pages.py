"""The page of a study: sections of variants, and the table of published figures."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from analysis.site.facts.inputs import load_inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.compiled import compiled
from analysis.site.pages.fragments import Place
from analysis.site.pages.home import top_findings
from analysis.site.pages.sentences import NOTHING
from analysis.site.pages.step_table import step_table
from analysis.site.pages.study_pages import (
    advice,
    host_table,
    lead,
    missing,
    published_table,
    summary,
)
from analysis.site.pages.variants import sections
from analysis.study import Case, Variant, discover
from analysis.toolchain.derived import ABSENT
from tests.roots import make_inputs, make_root, rows_without_value, settled, without_data
from tests.synthetic import CALLS, COPY, add_run, provenance_of, samples_of, write_machine


def test_registers_and_spills_are_folded_in(measured: StudyFacts, tmp_path: Path) -> None:
    step = measured.study.with_role("step")[1].name
    resources = pd.DataFrame(
        [["copy", step, "sm_90", "gather", 40, 0, 8, 16, 16]],
        columns=measured.inputs.resources.columns,
    )
    facts = StudyFacts(replace(measured.inputs, resources=resources), measured.study)
    page = sections(facts, Place(tmp_path, "../"), "step")
    address = f"evidence/copy/{step}/machine_code.html"
    assert f'data-fragment="../{address}"' in page
    shown = (tmp_path / address).read_text()
    assert "40 registers per thread on sm_90, 32 B of spills" in shown


def test_kernels_that_differ_are_named(measured: StudyFacts) -> None:
    variant = measured.study.with_role("step")[1]
    step = variant.name
    rows = [
        ["copy", step, "sm_90", symbol, registers, 0, 0, 0, 0]
        for symbol, registers in (("_Z4copyILi1EEvv", 40), ("_Z4copyILi2EEvv", 40), ("fill", 8))
    ]
    columns = measured.inputs.resources.columns
    for shown, said in (
        (rows[:2], "Compiled: 40 registers per thread on sm_90, no spills."),
        (
            rows,
            "Compiled: <code>copy&lt;1&gt;</code> and <code>copy&lt;2&gt;</code> with 40 registers",
        ),
    ):
        resources = pd.DataFrame(shown, columns=columns)
        facts = StudyFacts(replace(measured.inputs, resources=resources), measured.study)
        assert said in compiled(facts, variant)


def test_page_begins_with_its_thesis(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    unmeasured = StudyFacts(make_inputs(root), discover(root)["copy"])
    assert lead(unmeasured).startswith(f"**{unmeasured.study.question.strip()}**")
    description = root / "kernels" / "copy" / "study.yaml"
    text = description.read_text()
    assert "      belief: Bytes are as fast as vectors.\n" in text
    description.write_text(text.replace("      belief: Bytes are as fast as vectors.\n", ""))
    study = discover(root)["copy"]

    def seconds(step: Variant, case: Case, _: str) -> float:
        return 2e-3 if step.name == "bytewise" else 1e-3

    write_machine(root / "results", "box", study, seconds=seconds, noise=1e-6)
    facts = StudyFacts(settled(make_inputs(root)), study)
    found, scope = lead(facts).split("\n\n", 1)
    assert study.question.strip() in scope
    assert "<strong>Vectors are 2.00× as fast as bytes.</strong>" in without_data(found)
    assert 'href="#copy-vectors"' in found and "Belief" not in found
    assert " on box, " in found
    few = without_data(lead(StudyFacts(make_inputs(root), study)))
    assert "<p>In 1 run on 1 host: Vectors are 2.00× as fast as bytes." in few
    assert "On box (one run), " in few and "interval" not in few
    assert top_findings([StudyFacts(make_inputs(root), study)], str) == NOTHING
    assert summary(facts).endswith("? Vectors are 2.00× as fast as bytes.")


def test_hosts_are_shown_beside_their_figures(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    write_machine(root / "results", "box", COPY, variants=())
    first, second, third = COPY.with_role("step")[:3]
    rates = {first.name: 4e9, second.name: 8e9, third.name: 6e9}

    def seconds(step: Variant, case: Case, _: str) -> float:
        return case.payload_bytes / rates[step.name]

    def add(run: str, spin_s: float | None, *steps: Variant) -> None:
        looks = [{"spin_s": spin_s, "copy_bytes_per_s": rate} for rate in (1e10, 2e10, 5e10)]
        for step in steps:
            samples = samples_of(COPY, step, run=run, noise=0, seconds=seconds)
            known = provenance_of(COPY, step, run=run) | ({"conditions": looks} if spin_s else {})
            add_run(root / "results", "box", "copy", step.name, samples, known)

    add("2026-01-02T03:04:05Z", 0.006, first, second)
    add("2026-01-03T03:04:05Z", 0.012, first, second, third)
    add("2026-01-04T03:04:05Z", None, first, second, third)
    facts = StudyFacts(make_inputs(root), COPY)
    of_two = host_table(facts, first.name, second.name)
    assert of_two.count("<time>") == 2 and "2026-01-04" not in of_two
    assert of_two.index("2026-01-02") < of_two.index("6.000 ms") < of_two.index("2026-01-03")
    for cell in ("20.0 GB/s", "4.00 GB/s", "8.00 GB/s"):
        assert of_two.count(f">{cell}<") == 2
    of_three = host_table(facts, third.name, first.name)
    assert of_three.count("<time>") == 1 and "12.00 ms" in of_three and "6.00 GB/s" in of_three
    ceiling = COPY.with_role("ceiling")[0]
    assert host_table(facts, ceiling.name).startswith("No run has measured")


def test_variant_without_bytes_has_times_beside_its_hosts(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    write_machine(root / "results", "box", CALLS, variants=())
    step = CALLS.variant("kernel")
    looks = [{"spin_s": 0.006, "copy_bytes_per_s": 2e10}]
    samples = samples_of(CALLS, step, noise=0, seconds=lambda *_: 7e-6)
    known = provenance_of(CALLS, step) | {"conditions": looks}
    add_run(root / "results", "box", "calls", step.name, samples, known)
    shown = host_table(StudyFacts(make_inputs(root), CALLS), step.name)
    assert ">20.0 GB/s<" in shown and ">7.000 µs<" in shown


def test_published_table_has_printed_and_measured(measured: StudyFacts) -> None:
    page = published_table(measured)
    assert "1.95 GB/s" in page and "2.10 GB/s" in page and "box" in page


def test_published_table_leaves_out_a_machine_that_has_none_of_it(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    write_machine(root / "results", "box", COPY, variants=COPY.with_role("ceiling"))
    facts = StudyFacts(make_inputs(root), COPY)
    assert facts.machines == ["box"]
    page = published_table(facts)
    assert "1.95 GB/s" in page and "box" not in page


def test_common_note_of_published_figures_appears_once(measured: StudyFacts) -> None:
    page = published_table(measured)
    assert ". ms: mean of ten launches; GB/s: bytes divided by 1024^3, so GiB/s</caption>" in page
    assert ">note<" not in page and page.count("ten launches") == 1


def test_notes_are_shown_beside_their_figures(
    measured: StudyFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = [f"chapter {number}" for number in range(len(measured.published))]
    rows = [
        replace(row, note=note) if row.unit_printed == "ms" else row
        for row, note in zip(measured.published, notes, strict=True)
    ]
    monkeypatch.setattr(StudyFacts, "published", rows)
    page = published_table(measured)
    assert ">note<" in page and ">chapter 2</td>" in page
    assert "1024^3, so GiB/s</caption>" in page and "ms:" not in page


def test_missing_tables_of_code_have_a_reason(measured: StudyFacts) -> None:
    assert "table from the code" not in missing(measured)
    tables = measured.inputs.results.parent / "tables"
    folder = tables / "derived" / measured.study.name
    folder.mkdir(parents=True)
    (folder / ABSENT).write_text('{"layout": "x.so: not built; run: <it>"}')
    inputs = load_inputs(tables, measured.inputs.results, measured.inputs.studies)
    page = missing(StudyFacts(inputs, measured.study))
    assert "<code>layout</code>" in page and "x.so: not built; run: &lt;it&gt;" in page


def test_variant_is_shown_in_its_most_common_case(measured: StudyFacts) -> None:
    for study in measured.inputs.studies.values():
        facts = StudyFacts(measured.inputs, study)
        for variant in study.variants:
            usual = variant.in_grid("default")
            assert not usual or facts.study.shown_case(variant) in usual


def test_variants_missing_for_one_reason_are_listed_once(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    study = discover(root)["copy"]
    first, second, third, fourth, *_ = study.with_role("step")
    write_machine(root / "results", "box", study, variants=[first])
    for variant, gpus in ((second, 4), (third, 4), (fourth, 3)):
        rows = rows_without_value(study, variant, "skipped", f"needs {gpus} GPUs")
        provenance = provenance_of(study, variant)
        add_run(root / "results", "box", "copy", variant.name, rows, provenance)
    facts = StudyFacts(make_inputs(root), study)
    page = missing(facts)
    every = '<td data-column="cases">all</td><td data-column="variants"'
    alike = f"<code>{second.name}</code>, <code>{third.name}</code>"
    assert f">needs 4 GPUs</td>{every}>{alike}</td>" in page
    assert f">needs 3 GPUs</td>{every}><code>{fourth.name}</code></td>" in page
    assert page.count("no profiler has been run") == 1
    expected = (
        f"3 of {len(study.variants)} variants have not been measured on any machine:"
        " 2 (needs 4 GPUs) and 1 ("
    )
    assert expected in lead(facts)


def test_unmeasured_variants_come_after_measured_ones(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    study = discover(root)["copy"]
    first, second, third, fourth, *others = study.with_role("step")
    write_machine(root / "results", "box", study, variants=[first, third, *others])
    for variant, status in ((second, "skipped"), (fourth, "failed")):
        rows = rows_without_value(study, variant, status, "needs <4> GPUs")
        provenance = provenance_of(study, variant)
        add_run(root / "results", "box", "copy", variant.name, rows, provenance)
    facts = StudyFacts(make_inputs(root), study)
    assert facts.unreached == {second.name: "needs <4> GPUs"}
    page = sections(facts, Place(tmp_path, "../../"), "step")
    measured, unmeasured = page.split("### 1 variant not measured on any machine")
    assert re.findall(r"^### .* `(\w+)` {: #\1 .fold ", measured, re.MULTILINE) == [
        step.name for step in (first, third, fourth, *others)
    ]
    assert f"**{second.title}**{{: #{second.name} }} `{second.name}` was skipped: " in unmeasured
    assert f"After [`{first.name}`](#{first.name}). {second.idea.strip()}" in unmeasured
    for name in ("difference", "source"):
        assert f'data-fragment="../../evidence/copy/{second.name}/{name}.html"' in unmeasured
    assert "Figures" in measured and "Figures" not in unmeasured


def test_a_page_names_its_virtual_machines(measured: StudyFacts) -> None:
    assert "virtual" not in lead(measured)
    machines = {
        name: {**described, "hypervisor": True}
        for name, described in measured.inputs.machines.items()
    }
    shown = lead(StudyFacts(replace(measured.inputs, machines=machines), measured.study))
    assert "All hosts of box are virtual machines." in shown
    assert "(../machines.md#virtual-machines)" in shown


def test_advice_stands_before_the_finding_that_supports_it(measured: StudyFacts) -> None:
    (claim, *others) = [one for one in measured.study.claims if one.finding is not None]
    assert claim.finding is not None
    advised = replace(claim, finding=replace(claim.finding, advice="Load vectors."))
    facts = StudyFacts(measured.inputs, replace(measured.study, claims=(advised, *others)))
    assert "## What to do" not in advice(measured)
    shown = advice(facts)
    assert shown.startswith('## What to do\n\n<ol class="hp-findings"><li><strong>Load vectors.')
    assert "Vectors are 4.00× as fast as bytes" in without_data(shown)


def test_each_step_has_its_change_and_gains_in_one_table(measured: StudyFacts) -> None:
    steps = measured.study.with_role("step")
    heading, _, first, second, third, *_ = step_table(measured, steps).splitlines()
    assert heading == "| variant | what changes | box | gain | in all |"
    assert first.startswith(f"| [{steps[0].title}](#{steps[0].name}) | ")
    assert first.count("×") == 0 and second.count("×") == 1 and third.count("×") == 2
    assert "=" not in without_data(third)
    other = StudyFacts(measured.inputs, replace(measured.study, headline="kib=99"))
    assert re.search(r"[a-z_]+=\w+ \|", without_data(step_table(other, steps)))
    assert step_table(measured, []) == ""
    assert "medians over paired rounds" in step_table(measured, steps)
