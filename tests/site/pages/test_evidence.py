"""Captures, machine code and sources on pages."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.base.records import read_records
from analysis.measure.profile.timeline import normalised
from analysis.results.store.records import Counter as HardwareCounter
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.captured import gaps
from analysis.site.pages.compiled import compiled
from analysis.site.pages.copies import copy_tables
from analysis.site.pages.counters import QUANTITIES, counter_tables, walk_tables
from analysis.site.pages.staging import stage_sources
from analysis.study import discover, parse_case
from analysis.toolchain import sass
from tests.captured import captured_root
from tests.roots import build, make_inputs, make_root, text_of
from tests.synthetic import COPY, RUN, name_of, set_capture

LATER = RUN.replace("2026-01", "2026-02")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return captured_root(tmp_path)


def test_unread_module_gives_its_reason(tmp_path: Path) -> None:
    step = COPY.with_role("step")[0]
    sass.write_code(tmp_path / "code.csv", "copy", step.name, [], "no tool <here>")
    facts = StudyFacts(make_inputs(make_root(tmp_path / "root")), COPY)
    unread = replace(facts.inputs, machine_code=sass.read_code(tmp_path / "code.csv"))
    sentence = compiled(StudyFacts(unread, COPY), step)
    assert sentence == "<p>The machine code could not be read: no tool &lt;here&gt;.</p>"
    assert sass.read_code(tmp_path / "none.csv") == {}
    assert compiled(facts, step) == ""


def test_machine_code_is_shown_beside_that_of_the_previous_step(tmp_path: Path) -> None:
    loads, stores = Counter({64: 1, 128: 2}), Counter({128: 2})
    texts, written = [], {}
    for name, in_flight in (("vectors", 1), ("warps", 1), ("in_flight", 2)):
        code = sass.KernelCode("sm_90", "copy", loads, stores, in_flight, in_flight * 512)
        written[name] = [code]
        sass.write_code(tmp_path / "one.csv", "copy", name, [code])
        texts.append((tmp_path / "one.csv").read_text())
    (tmp_path / "all.csv").write_text(texts[0] + "".join(t.partition("\n")[2] for t in texts[1:]))
    read = sass.read_code(tmp_path / "all.csv")
    assert {name: read["copy", name].kernels for name in written} == written
    inputs = replace(make_inputs(make_root(tmp_path / "root")), machine_code=read)
    shown = compiled(StudyFacts(inputs, COPY), COPY.variant("in_flight"))
    assert shown.index("warps") < shown.index("in_flight")
    assert shown.replace("\u00a0", " ").count("1 of 8 B, 2 of 16 B") == 2
    assert "1.02 kB" in shown


def test_stale_and_missing_counters_are_noted(root: Path) -> None:
    study = discover(root)["copy"]
    first, second, third, fourth, fifth = study.with_role("step")
    facts = StudyFacts(make_inputs(root), study)
    alone, beside, stale, refused, never = (
        counter_tables(facts, step, "../") for step in (first, second, third, fourth, fifth)
    )
    for row in ("read over the link", "achieved occupancy", "warps wait for", "not a timing"):
        assert row in alone
    assert ".counters.csv" in beside
    assert f'<th scope="col">{first.name}</th><th scope="col">{second.name}</th>' in beside
    assert f"{third.name}, stale" in stale and f"{second.name}, stale" not in stale
    assert refused == never == ""
    assert gaps(facts, first) == []
    assert gaps(facts, third) == ["The timeline on box is stale: the code has changed since."]
    assert gaps(facts, fourth) == [
        "No counters and no timeline on box: counters need &lt;permission&gt;."
    ]
    assert gaps(facts, fifth) == ["No counters and no timeline on box: no profiler has been run."]
    status = {"status": "not captured: launches no kernel"}  # as older results have it
    again = set_capture(root / "results", "box", study, "counters", {fifth.name: status}, at=LATER)
    assert gaps(StudyFacts(make_inputs(root), study), fifth) == [
        "No counters on box: no kernel was seen in the launch that was profiled.",
        "No timeline on box: no profiler has been run.",
    ]
    again.unlink()


def test_counters_show_the_change_of_a_step(root: Path) -> None:
    study = discover(root)["copy"]
    first, second = study.with_role("step")[:2]
    path = root / "results" / "box" / "copy" / f"{name_of(RUN)}.counters.csv"
    counters = [
        replace(one, value=1000.0)
        if (one.variant, one.metric) == (second.name, "pcie__read_bytes.sum")
        else one
        for one in read_records(path, HardwareCounter)
    ]
    variants = {name: dict[str, str]() for name in (first.name, second.name)}
    set_capture(root / "results", "box", study, "counters", variants, counters)
    beside = counter_tables(StudyFacts(make_inputs(root), study), second, "../")
    cells = re.search(r"<td>read over the link</td><td[^>]*>(.*?)</td><td[^>]*>(.*?)</td>", beside)
    assert cells is not None
    assert cells[2].startswith("1.00 kB, ") and not cells[1].startswith("1.00 kB")
    assert first.name in beside.partition("read over the link")[0]


def test_a_point_can_be_followed_to_its_source(root: Path) -> None:
    study = discover(root)["copy"]
    first, second = study.with_role("step")[:2]
    second.path.write_text(second.path.read_text() + "\nint later_than_the_results;\n")
    site = build(root)
    folder = site / "data" / "box" / "copy"
    assert 'data-fragment="../data/box/copy/index.html" id="box-copy"' in (
        (site / "data" / "index.html").read_text()
    )
    data = (folder / "index.html").read_text()
    row = re.search(rf'<tr id="box-copy-{first.name}">.*?</tr>', data)
    assert row is not None
    assert f'href="{name_of(RUN)}.csv"' in row[0]
    assert f'href="{first.name}.source.cu"' in row[0]
    for kind in ("csv", "json", "counters.csv", "counters.json", "timeline.json", "timeline.json"):
        assert f'href="{name_of(RUN)}.{kind}"' in data
        assert (folder / f"{name_of(RUN)}.{kind}").exists()
    same = (folder / f"{first.name}.source.cu").read_text()
    assert same == f"// Measured at commit {'0' * 40}; unchanged since.\n{first.path.read_text()}"
    assert not (folder / f"{second.name}.source.cu").exists()
    assert "stale" in (folder / f"{second.name}.source-changed.cu").read_text().splitlines()[0]
    counters = site / "evidence" / "copy" / first.name / "counters.html"
    assert "Counters on box" in text_of(counters)
    file = f"{name_of(RUN)}.counters.csv"
    assert f'href="../../../data/box/copy/{file}"' in counters.read_text()
    page = text_of(site / "studies" / "copy" / "index.html")
    reason = "No counters and no timeline on box: counters need &lt;permission&gt;."
    assert page.count(reason) == 1
    assert (site / "charts" / "copy" / "timeline.json").exists()


def test_samples_of_a_removed_variant_have_no_source(root: Path) -> None:
    inputs = make_inputs(root)
    run = inputs.runs[0]
    gone = run.model_copy(update={"variants": {"gone": run.variants["bytewise"]}})
    assert stage_sources(replace(inputs, runs=[gone]), root) == {}


def test_reads_of_page_tables_are_requests_without_another_origin() -> None:
    device = "lts__t_requests{}_aperture_device.sum"
    counted = {"": 3_947_063, "_srcnode_gpc": 1_807_000, "_srcunit_ltcfabric": 1_490_212}
    counters = {device.format(source): float(count) for source, count in counted.items()}
    write = QUANTITIES["reads of page tables"]
    assert write(counters, 0).replace("\u202f", "").replace(",", "").startswith("649")
    assert write(dict(list(counters.items())[:2]), 0) == ""


def test_reads_of_page_tables_are_shown_for_each_value_of_a_key(root: Path) -> None:
    study = discover(root)["copy"]
    first, _, third, *_ = study.with_role("step")
    case = study.headline
    key, each = next((k, v) for k, v in parse_case(case).items() if isinstance(v, int))
    device = "lts__t_requests{}_aperture_device.sum"
    counted = {"": 9.0 * each, "_srcnode_gpc": 5.0 * each, "_srcunit_ltcfabric": 1.5 * each}
    metrics = [(device.format(source), value) for source, value in counted.items()]

    def captured(stale_case: str) -> None:
        """Captures of both, of which that of the third is stale."""
        rows = [
            HardwareCounter(step.name, at, "k", metric, "1", value)
            for step, at in ((first, case), (third, stale_case))
            for metric, value in metrics
        ]
        stale = {"source_sha256": "0" * 64, "case": stale_case}
        variants = {first.name: dict[str, str](), third.name: stale}
        set_capture(root / "results", "box", study, "counters", variants, rows)

    captured(case)
    shown = walk_tables(StudyFacts(make_inputs(root), study), key, "piece")
    assert f">{first.name}</td>" in shown and f">{third.name}, stale</td>" in shown
    assert ">2.50<" in shown and "for each piece" in shown
    assert shown.count("<caption") == 1
    # One table per case.
    captured(other := next(c.id for c in third.cases if c.id != case))
    shown = walk_tables(StudyFacts(make_inputs(root), study), key, "piece")
    assert shown.count("<caption") == 2 and f"case {other}<" in shown


def test_copies_show_the_utilisation_of_the_copy_engine(root: Path) -> None:
    study = discover(root)["copy"]
    first, _, third, *_ = study.with_role("step")
    assert copy_tables(StudyFacts(make_inputs(root), study)) == ""
    events: list[tuple[int, int, int | None, str, str, int | None, int]] = [
        (1_000, 9_000, 7, "memcpy", "memcpy DtoH", 64, 1),
        (7_500, 8_000, None, "host call", "cudaMemcpyAsync", None, 2),
        (10_000, 40_000, 7, "memcpy", "memcpy HtoD", 1_500_000, 2),
        (5_000, 25_000, 8, "kernel", "gather", None, 4),
        (20_000, 40_000, 9, "kernel", "gather", None, 5),
        (90_000, 110_000, 7, "memcpy", "memcpy HtoD", 600_000, 3),
    ]
    variants = {first.name: dict[str, str](), third.name: {"source_sha256": "0" * 64}}

    def captured(events: list[Any]) -> None:
        found = [event for name in variants for event in normalised(name, events)]
        set_capture(root / "results", "box", study, "timeline", variants, found)

    captured(events)
    shown = copy_tables(StudyFacts(make_inputs(root), study))
    assert f">{first.name}</td>" in shown and f">{third.name}, stale</td>" in shown
    for cell in (">2.500 µs<", ">2<", ">100.0 µs<", ">50 %<", ">50.0 GB/s<", ">30.0 GB/s<"):
        assert cell in shown
    assert shown.count("<caption") == 1
    captured(events[:-1])
    alone = copy_tables(StudyFacts(make_inputs(root), study))
    assert ">1<" in alone and "GB/s" not in alone
