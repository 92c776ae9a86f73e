"""Comparison of machines: ratios with intervals, hosts, published figures, omissions."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.site.facts.comparison import (
    EQUAL,
    FASTER,
    HOST,
    PUBLISHED,
    SLOWER,
    UNCLEAR,
    Comparison,
    Figure,
    Ratio,
    Subject,
)
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Case, Variant, discover
from tests.roots import make_inputs, make_root, rows_without_value
from tests.synthetic import (
    COPY,
    add_run,
    files_of,
    make_stale,
    provenance_of,
    samples_of,
    write_machine,
)

BOX, OTHER = (Subject(name, "machine", name) for name in ("box", "other-box"))


def figure(seconds: float, low: float, high: float) -> Figure:
    return Figure("copy", COPY.variants[0], "n=1", 1, "gpu_time", seconds, low, high)


def ratio(of: Figure, against: Figure) -> Ratio:
    return Ratio(BOX, OTHER, of, against)


def test_an_interval_combines_both_as_independent() -> None:
    one = ratio(figure(1.0, 0.9, 1.1), figure(2.0, 1.9, 2.2))
    low, high = one.interval
    assert one.value == 2.0
    assert math.log(2 / low) == pytest.approx(math.hypot(math.log(2 / 1.9), math.log(1.1)))
    assert math.log(high / 2) == pytest.approx(math.hypot(math.log(1.1), math.log(1 / 0.9)))
    # An exact figure adds no error.
    assert ratio(figure(1, 1, 1), figure(2, 1.9, 2.2)).interval == pytest.approx((1.9, 2.2))


@pytest.mark.parametrize(
    ("against", "verdict"),
    [
        (figure(2, 1.9, 2.1), FASTER),
        (figure(0.5, 0.45, 0.55), SLOWER),
        (figure(1.05, 0.9, 1.2), UNCLEAR),
        (figure(1.005, 1.004, 1.006), EQUAL),
        (figure(0.995, 0.96, 1.04), EQUAL),
        (figure(2, math.nan, math.nan), UNCLEAR),
    ],
)
def test_only_figures_beyond_noise_surprise(against: Figure, verdict: str) -> None:
    one = ratio(figure(1, 1, 1), against)
    assert one.verdict == verdict
    nearer = {FASTER: math.log(1.9), SLOWER: -math.log(0.55)}
    assert one.surprise == pytest.approx(nearer.get(verdict, 0))


A, B = "a" * 8, "b" * 8


def seconds(variant: Variant, case: Case, metric: str) -> float:
    return case.payload_bytes / 1e9


def on_host(root: Path, host: str, run: str, factor: float) -> None:
    """A run of the first step on a host of `box`."""
    study = discover(root)["copy"]
    step = study.variant("bytewise")
    samples = [
        replace(sample, value=(sample.value or 0) * factor)
        for sample in samples_of(study, step, run=run, seconds=seconds, noise=1e-4, grid="smoke")
    ]
    provenance = provenance_of(study, step, run=run)
    machine = {**provenance["machine"], "host": host}
    add_run(root / "results", "box", "copy", step.name, samples, {**provenance, "machine": machine})


def comparison_of(root: Path) -> Comparison:
    inputs = make_inputs(root)
    studies = {name: StudyFacts(inputs, study) for name, study in inputs.studies.items()}
    return Comparison(inputs, studies)


def test_hosts_and_printed_figures_are_held_against_a_machine(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    write_machine(
        root / "results", "other-box", discover(root)["copy"], seconds=seconds, grid="smoke"
    )
    for day, host, factor in ((1, A, 1.0), (2, B, 1.4), (3, A, 1.0)):
        on_host(root, host, f"2026-01-0{day}T00:00:00Z", factor)
    comparison = comparison_of(root)
    hosts = {one.name: one for one in comparison.others(BOX) if one.kind == HOST}
    assert sorted(hosts) == [f"box, host {A}", f"box, host {B}"]
    (slow,) = comparison.ratios(BOX, hosts[f"box, host {B}"])
    assert slow.value == pytest.approx(1.4, rel=1e-3)
    assert not [one for one in comparison.others(OTHER) if one.kind == HOST]
    assert len(comparison.figures[comparison.host(BOX, A)]) == len(slow.of.variant.cases[:1]) * 2
    (printed,) = [one for one in comparison.others(BOX) if one.kind == PUBLISHED]
    assert comparison.unmeasured(printed) == []
    (of_printed,) = comparison.ratios(BOX, printed)
    assert of_printed.of.variant.name == "bytewise"
    assert of_printed.has_interval  # a printed figure counts as exact


def test_incomparable_variants_are_named_with_their_reason(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    study = discover(root)["copy"]
    results = root / "results"
    first, second, third, fourth = study.with_role("step")[:4]
    write_machine(results, "box", study, variants=[first, second, third, fourth], grid="smoke")
    write_machine(results, "other-box", study, variants=[first, second], grid="smoke")
    rows = rows_without_value(study, third, "skipped", "needs a newer driver")
    add_run(results, "other-box", "copy", third.name, rows, provenance_of(study, third))
    (path,) = files_of(results, "other-box", "copy")
    make_stale(path, second.name)
    comparison = comparison_of(root)
    (printed,) = comparison.published
    assert comparison.unmeasured(printed) == ["copy/looping"]
    assert [one.of.variant for one in comparison.ratios(BOX, OTHER)] == [first]
    reasons = comparison.incomparable(BOX, OTHER)
    assert set(reasons) == {f"{why} on other-box" for why in ("stale", "skipped", "not measured")}
    assert reasons["stale on other-box"] == [f"copy/{second.name}"]
    assert reasons["skipped on other-box"] == [f"copy/{third.name}"]
    assert reasons["not measured on other-box"] == [f"copy/{fourth.name}"]
