"""Runs that name the bound of a claim, which alone judge it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.fragments import Place
from analysis.site.pages.ledger import claims as page_of
from analysis.study import Study
from analysis.study.claims.claim import digests, still_named
from tests.study.claims.studies import (
    COUNTED,
    NEW,
    OLD,
    SECONDS,
    SPEEDUP,
    UNITS,
    add_samples,
    claim,
    claims_of,
    count,
    describe,
    measure,
    parts_of,
    publish,
    read,
    write_study,
)
from tests.synthetic import samples_of

OLDEST, OLDER = "2025-12-30T00:00:00Z", "2025-12-31T00:00:00Z"
FOURFOLD = claim(**{**SPEEDUP, "at_least": 3})
HALF = {**SECONDS, "fast": 4e-3}
"""Seconds with which `fast` is only twice as fast as `slow`."""


def measured(tmp_path: Path, *claims: Mapping[str, Any], then: list[Any]) -> Study:
    """A study with `claims` and two runs of it; in the older one `fast` is half as fast. Each names
    the claims of `then`."""
    study = write_study(tmp_path / "now", *claims)
    for run, seconds, known in zip((OLD, NEW), (HALF, SECONDS), then, strict=True):
        named = write_study(tmp_path / run, *known) if known else None
        measure(tmp_path / "now" / "results", study, seconds, run=run, then=named)
    return study


def judged(tmp_path: Path, study: Study) -> dict[str, dict[str, Any]]:
    rows = claims_of(tmp_path / "now" / "results", study)
    return {row["claim"]: row for row in rows}


def test_only_runs_that_name_the_bound_judge_it(tmp_path: Path) -> None:
    study = measured(tmp_path, FOURFOLD, then=[[], [FOURFOLD]])
    row = judged(tmp_path, study)["it"]
    assert (row["verdict"], row["bound"]) == ("holds", "before")
    assert (row["runs"], row["judging"]) == (2, 1)
    assert row["judged"] == pytest.approx(4, rel=1e-3)


def test_a_run_that_may_judge_does_not_replace_the_others_in_the_figure(tmp_path: Path) -> None:
    study = measured(tmp_path, FOURFOLD, then=[[], [FOURFOLD]])
    results = tmp_path / "now" / "results"
    for run in (OLDEST, OLDER):
        measure(results, study, HALF, run=run)
    row = judged(tmp_path, study)["it"]
    assert (row["runs"], row["judging"], row["verdict"]) == (4, 1, "holds")
    assert row["measured"] == pytest.approx(2, rel=1e-3)
    assert row["ci_low"] < 2 and row["ci_high"] > 4, "an interval for another run"
    assert 3.9 < row["judged_low"] < row["judged"] < row["judged_high"] < 4.1
    facts = StudyFacts(read(tmp_path / "now", study), study)
    place = Place(tmp_path / "site", "")
    said = "verdict from the one of 4 runs made after we fixed the threshold"
    page = page_of(facts, place)
    assert "holds</span> box: 2.00× (in 1 run on 1 host)" in page
    folded = (place.site / "evidence" / "copy" / "claims" / "it.html").read_text()
    assert re.search(f"<td[^>]*>{said}</td>", folded)
    assert "in the runs that the verdict uses: 4.00×" in folded and "at least 3" in folded


def test_part_of_a_claim_shows_both_figures_if_they_differ(tmp_path: Path) -> None:
    both = {"id": "it", "says": "So.", "all": [{**SPEEDUP, "at_least": n} for n in (3, 5)]}
    study = measured(tmp_path, both, then=[[], [both]])
    measure(tmp_path / "now" / "results", study, HALF, run=OLDEST)
    first, second = (
        part.sentence(with_case=False) for part in parts_of(tmp_path / "now" / "results", study)
    )
    assert (
        first.startswith("fast over slow: 2") and "; in the runs that the verdict uses: 4" in first
    )
    assert first.endswith("not at least 5") and second.endswith("at least 3")
    for name in (OLD, OLDEST):
        measure(tmp_path / "now" / "results", study, HALF, run=name, then=study)
    (one, _) = parts_of(tmp_path / "now" / "results", study)
    assert "verdict uses" not in one.sentence(with_case=False)


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ((NEW,), "threshold chosen after this run"),
        ((OLD, NEW), "threshold chosen after these runs"),
    ],
)
def test_without_a_run_that_names_the_bound_all_judge_and_are_marked(
    tmp_path: Path, runs: tuple[str, ...], said: str
) -> None:
    study = write_study(tmp_path, FOURFOLD)
    for run in runs:
        measure(tmp_path / "results", study, run=run)
    (row,) = claims_of(tmp_path / "results", study)
    assert (row["verdict"], row["bound"]) == ("holds", "afterwards")
    assert (row["runs"], row["judging"]) == (len(runs), 0)
    place = Place(tmp_path / "site", "")
    page_of(StudyFacts(read(tmp_path, study), study), place)
    folded = (place.site / "evidence" / "copy" / "claims" / "it.html").read_text()
    assert f" on {len(runs)} host{'s' * (len(runs) > 1)}, {said}<" in folded


def test_a_bound_that_changed_is_not_named_by_earlier_runs(tmp_path: Path) -> None:
    changed = claim(**{**SPEEDUP, "at_least": 3.5})
    study = measured(tmp_path, changed, then=[[FOURFOLD], [FOURFOLD]])
    assert judged(tmp_path, study)["it"]["bound"] == "afterwards"


def test_a_comparison_stays_named_in_another_claim_unless_one_was_dropped(tmp_path: Path) -> None:
    tests = [{**SPEEDUP, "at_least": bound} for bound in (2, 3)]
    both: dict[str, Any] = {"id": "both", "says": "So.", "all": tests}
    one, two = ({"id": f"at_least_{t['at_least']}", "says": "So.", "test": t} for t in tests)
    for name, now, then, bound in (
        ("divided", [one, two], [both], "before"),
        ("joined", [both], [one, two], "before"),
        ("halved", [two], [both], "afterwards"),
        ("extended", [both], [one], "afterwards"),
    ):
        study = measured(tmp_path / name, *now, then=[then, then])
        found = {row["bound"] for row in judged(tmp_path / name, study).values()}
        assert found == {bound}, name


def test_a_profile_judges_the_bounds_that_it_names(tmp_path: Path) -> None:
    test = {"kind": "counts_per", "of": "fast", "counter": "lts__t_sectors.sum", "per": COUNTED}
    study = write_study(tmp_path, claim(**test, at_least=3), FOURFOLD | {"id": "other"})
    assert list(study.bounds_of("fast", counted=True)) == ["it"]
    results = tmp_path / "results"
    measure(results, study, run=OLD, then=study)
    for then, bound in ((None, "afterwards"), (study, "before")):
        count(results, study, NEW, then=then, fast=100)
        row = next(row for row in claims_of(results, study) if row["claim"] == "it")
        assert (row["verdict"], row["bound"]) == ("holds", bound)
        page = page_of(StudyFacts(read(tmp_path, study), study), Place(tmp_path / "site", ""))
        folded = (tmp_path / "site" / "evidence" / "copy" / "claims" / "it.html").read_text()
        assert ("threshold chosen after this profile" in folded) == (then is None), page


def test_claim_without_a_judging_run_has_no_mark(tmp_path: Path) -> None:
    study = write_study(tmp_path, claim(**UNITS), {**FOURFOLD, "id": "other"})
    publish(tmp_path / "results")
    measure(tmp_path / "results", study, {"slow": 8e-3})
    assert [row["bound"] for row in claims_of(tmp_path / "results", study)] == ["", ""]
    fast = samples_of(study, study.variant("fast"), rounds=1, run=NEW)
    skipped = [replace(s, value=None, verified=0, status="skipped", reason="no") for s in fast]
    add_samples(tmp_path / "results", study, "fast", skipped, NEW)
    assert [row["bound"] for row in claims_of(tmp_path / "results", study)] == ["", ""]


def test_digest_includes_the_headline_but_not_the_words() -> None:
    study = describe(FOURFOLD)
    assert digests(study) == digests(describe({**FOURFOLD, "says": "In other words."}))
    assert digests(study) != digests(study | {"headline": {"rows": 2}})
    assert digests(study) != digests(describe(claim(**{**SPEEDUP, "at_least": 4})))
    assert digests(describe({"id": "it", "says": "So.", "untested": "why"})) == {}


def test_claim_without_one_of_its_comparisons_names_no_bound() -> None:
    assert still_named({"one": ["a", "b"], "two": ["c"]}, {"a", "c", "d"}) == {"c"}
    assert still_named({}, {"a"}) == frozenset()


def test_a_variant_has_the_claims_that_compare_it(tmp_path: Path) -> None:
    other = {**FOURFOLD, "id": "other", "test": {**SPEEDUP, "of": "wide", "by": "rate"}}
    study = write_study(tmp_path, FOURFOLD, other, {**claim(**UNITS), "id": "units"})
    assert {name: [*study.bounds_of(name)] for name in ("slow", "fast", "wide", "host")} == {
        "slow": ["it", "other"],
        "fast": ["it"],
        "wide": ["other"],
        "host": [],
    }
    assert study.bounds_of("fast") == {"it": [*digests(describe(FOURFOLD))["it"]]}
