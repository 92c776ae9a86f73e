"""Comparison of machines: ratios with intervals, hosts, published figures, omissions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
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


def ratio(runs: Sequence[float], of_other: Sequence[float]) -> Ratio:
    """Two machines with these times of their runs."""

    def figure(by_run: Sequence[float]) -> Figure:
        place = ("copy", COPY.variants[0], "n=1", 1, "gpu_time")
        return Figure(*place, float(np.median(by_run)), tuple(by_run))

    of, against = figure(runs), figure(of_other)
    figures = {BOX: {of.key: of}, OTHER: {against.key: against}}
    comparison = Comparison(cast(Any, None), {})
    vars(comparison)["figures"] = figures
    (found,) = comparison.ratios(BOX, OTHER)
    return found


STEADY = (0.999, 1.0, 1.001)


@pytest.mark.parametrize(
    ("factor", "spread", "verdict"),
    [
        (2, 1, FASTER),
        (0.5, 1, SLOWER),
        (1.005, 1, EQUAL),
        (1.04, 1, EQUAL),
        (1.0, 60, UNCLEAR),
        (1.2, 150, UNCLEAR),
    ],
)
def test_machines_are_compared_by_their_runs(factor: float, spread: float, verdict: str) -> None:
    runs = [factor * (1 + spread * (one - 1)) for one in STEADY]
    one = ratio(STEADY, runs)
    assert one.verdict == verdict
    assert one.judged and one.value == one.judged.ratio == pytest.approx(factor, rel=0.01)
    low, high = one.interval
    assert low < one.value < high


def test_without_enough_runs_there_is_no_verdict() -> None:
    one = replace(ratio(STEADY, STEADY), judged=None)
    assert (one.judged, one.verdict) == (None, UNCLEAR)
    assert all(map(math.isnan, one.interval))


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
    assert of_printed.judged is None  # a printed figure has no runs


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
