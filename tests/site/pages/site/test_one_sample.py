"""One changed sample, and all that a site says because of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from analysis.study import discover
from tests.roots import build, copy_of_repository
from tests.synthetic import RUN, add_run, files_of, provenance_of, samples_in, write_machine

STUDY, VARIANT, CLAIM = "transfers", "pageable_loop", "pinned_to_device"
NEXT = "pinned_loop"
"""The step after VARIANT, which its sentence compares with it."""
METRIC = "host_time"
RUNS = [RUN.replace("2026-01", f"2026-0{month}") for month in (1, 2, 3)]
SLOWER = 1000
"""Factor of the changed time: enough to leave every claim about it undecided."""


def card(page: str) -> str:
    """The study's card on the home page."""
    cards = re.split(r'(?=<[^>]+class="hp-card")', page)
    (found,) = (one for one in cards[1:] if f'<h3><a href="studies/{STUDY}/">' in one)
    return found


def figure(site: Path, case: str) -> float:
    """The figure that the explorer reads."""
    table = pd.read_csv(site / "data" / "summary.csv")
    of_case = (table["variant"] == VARIANT) & (table["case"] == case) & (table["metric"] == METRIC)
    (median,) = table.loc[of_case, "median"]
    return float(median)


def parts(site: Path) -> Iterator[tuple[str, str]]:
    """The site's statements about the study, by the kind of part that makes them."""
    charts = site / "charts" / STUDY
    page = (site / "studies" / STUDY / "index.html").read_text()
    step = page.partition(f'id="{NEXT}"')[2]
    (sentence,) = re.findall(r"On box[^\n]*this step[^\n]*", step)[:1]
    yield "sentence", sentence
    yield "picture", (charts / "steps.wide.svg").read_text()
    yield "card", card((site / "index.html").read_text())
    yield "verdict", (site / "badges" / STUDY / f"{CLAIM}.svg").read_text()
    yield "adviser", (charts / "adviser.widget.json").read_text()


@pytest.mark.long
def test_one_sample_changes_all_that_is_said_of_it(tmp_path: Path) -> None:
    root = copy_of_repository(tmp_path)
    study = discover(root)[STUDY]
    case = study.headline
    for run in RUNS:
        write_machine(root / "results", "box", study, run=run, rounds=1, grid="default")
    before = build(root)
    said = dict(parts(before))
    median = figure(before, case)

    variant = study.variant(VARIANT)
    files = files_of(root / "results", "box", STUDY)
    samples = [one for path in files for one in samples_in(path, VARIANT)]
    (hit,) = (
        one
        for one in samples
        if one.case == case
        and one.metric == METRIC
        and one.value == pytest.approx(median, rel=1e-4)
    )
    changed = replace(hit, value=SLOWER * median)
    rows = [changed if one is hit else one for one in samples if one.run == hit.run]
    provenance = provenance_of(study, variant, run=hit.run)
    add_run(root / "results", "box", STUDY, VARIANT, rows, provenance)

    after = build(root)
    assert figure(after, case) != median
    unchanged = [name for name, text in parts(after) if text == said[name]]
    assert unchanged == []
