"""Claims and their verdicts on pages."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.base.errors import FieldError
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.badges import outcome
from analysis.site.pages.fragments import Place
from analysis.site.pages.ledger import IN_VIEW, claims_of, ledger
from tests.roots import settled
from tests.study.claims.studies import (
    FEW_SMS,
    NEW,
    SPEEDUP,
    UNITS,
    add_samples,
    claim,
    measure,
    publish,
    read,
    write_study,
)
from tests.synthetic import samples_of

WHERE = "On box, threshold chosen after seeing the data"
FEW = "in fewer than 3 runs or 2 hosts"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "site", "../")


def folded(place: Place, claim: str) -> str:
    """The folded part below a claim of the study `copy`."""
    return (place.site / "evidence" / "copy" / "claims" / f"{claim}.html").read_text()


def test_the_ledger_shows_claims_with_verdicts_and_samples(tmp_path: Path, place: Place) -> None:
    study = write_study(
        tmp_path,
        claim(**SPEEDUP),
        {"id": "sms", "says": "Few <SMs>.", "test": {**FEW_SMS, "at_most": 15}},
        {"id": "units", "says": "GiB/s.", "test": UNITS},
        {"id": "later", "says": "Later.", "untested": "needs two GPUs"},
    )
    results = tmp_path / "results"
    publish(results)
    measure(results, study)
    page = ledger({"copy": StudyFacts(read(tmp_path, study), study)}, {}, place)
    first, _, rest = page.partition("\n\n")
    expected = "4 verdicts, one per claim and machine: 2 hold, 1 does not hold and 1 is not tested."
    expected = expected.replace("2 hold", f"2 hold (1 {FEW})").replace(
        "not hold", f"not hold {FEW}"
    )
    assert (
        re.sub(' data-(names|few)="[^"]*"', "", first)
        == f'<p class="hp-ledger" role="status">{expected}</p>'
    )
    assert rest.startswith("## Copy {: #copy .fold }\n")
    assert f"- {WHERE}: 1 holds {FEW} and 1 does not hold {FEW}." in page
    assert "- On box: 1 is not tested." in page
    assert "- From the published figures alone: 1 holds." in page
    assert "Few &lt;SMs&gt;." in page
    assert 'hp-holds">holds</span> on box in 1 run on 1 host: 4.00× (one run)</span>' in page
    assert 'hp-fails">does not hold</span> on box in 1 run on 1 host: 16 (one run)</span>' in page
    assert 'hp-verdict">not tested</span> on box</span>' in page
    assert "needs two GPUs" in folded(place, "later")
    holds = folded(place, "it")
    assert "4.00×" in holds and 'hp-holds">holds<' in holds
    samples = r'<a href="../../../data/\?samples.case=[^"#]+#box-copy-fast"><code>fast</code></a>'
    assert re.search(samples, holds)


def test_measured_claim_without_a_decision_is_undecided(tmp_path: Path, place: Place) -> None:
    fourfold = SPEEDUP | {"at_least": 4}
    study = write_study(
        tmp_path,
        claim(**fourfold),
        {"id": "both", "says": "Both.", "all": [fourfold, SPEEDUP]},
    )
    measure(tmp_path / "results", study, {"slow": 8e-3, "fast": 2e-3}, noise=0.1)
    results = tmp_path / "results" / "box" / "copy"
    page = claims_of(StudyFacts(read(tmp_path, study), study), place)
    assert "- On box: 2 are undecided." in page
    assert 'hp-verdict">undecided</span> on box: 4.' in page
    assert "Compared: fast over slow." in folded(place, "it")
    for path in results.iterdir():
        path.unlink()
    measure(tmp_path / "results", study, {"slow": 8e-3}, noise=0.1)
    page = claims_of(StudyFacts(read(tmp_path, study), study), place)
    assert "- On box: 2 are not tested." in page


def test_undecided_claim_shows_the_verdict_on_average_over_hosts(
    tmp_path: Path, place: Place
) -> None:
    study = write_study(tmp_path, claim(**SPEEDUP | {"at_least": 3.6}))
    for day, fast in enumerate((1.9e-3, 2e-3, 2.1e-3, 2e-3), start=1):
        run = f"2026-02-0{day}T00:00:00Z"
        measure(tmp_path / "results", study, {"slow": 8e-3, "fast": fast}, noise=1e-4, run=run)
    facts = StudyFacts(settled(read(tmp_path, study)), study)
    page = claims_of(facts, place)
    expected = r"undecided</span> on box: 4\.00× \([0-9.]+ to [0-9.]+; 3 runs"
    assert re.search(expected, page), page
    folded = (place.site / "evidence" / "copy" / "claims" / "it.html").read_text()
    assert "though on average over hosts it is (" in folded
    whole = ledger({"copy": StudyFacts(read(tmp_path, study), study)}, {}, place)
    assert (
        "1 is undecided. 1 of the 1 undecided is decided on average over hosts: 1 holds." in whole
    )
    easy = claim(**SPEEDUP) | {"id": "easy"}
    both = write_study(tmp_path, claim(**SPEEDUP | {"at_least": 3.6}), easy)
    whole = ledger({"copy": StudyFacts(read(tmp_path, both), both)}, {}, place)
    assert "1 of the 1 undecided is decided on average over hosts: 1 holds." in whole


def test_claim_has_a_badge_with_a_link(tmp_path: Path, place: Place) -> None:
    study = write_study(tmp_path, claim(**SPEEDUP))
    measure(tmp_path / "results", study)
    claims_of(StudyFacts(read(tmp_path, study), study), place)
    picture = "badges/copy/it.svg"
    badge = (place.site / picture).read_text()
    assert badge.startswith("<svg") and "it: holds in 1 run on 1 host</title>" in badge
    address = "../../../ledger/#copy-it"
    assert f"[![it: holds in 1 run on 1 host](../../../{picture})]({address})" in folded(
        place, "it"
    )


def test_badge_counts_machines_that_disagree() -> None:
    assert outcome([]) == "not tested"
    assert outcome([("holds", "")] * 2) == "holds"
    assert outcome([("not tested", ""), ("holds", ""), ("holds", "")]) == (
        "holds on 2 of 3, not tested on 1"
    )
    few = ("holds", "in 1 run on 1 host")
    assert outcome([few]) == "holds in 1 run on 1 host"
    assert outcome([few, ("holds", "")]) == "holds (1 in fewer than 3 runs or 2 hosts)"


def test_claims_of_the_project_are_counted_and_listed_separately(
    tmp_path: Path, place: Place
) -> None:
    target = {"id": "target", "says": "Faster.", "ours": True, "test": {**SPEEDUP, "at_least": 9}}
    study = write_study(tmp_path, target, claim(**SPEEDUP))
    measure(tmp_path / "results", study)
    page = claims_of(StudyFacts(read(tmp_path, study), study), place)
    theirs, _, ours = page.partition("**Ours:**")
    assert theirs.startswith(f"**Of the write-up:**\n\n- {WHERE}: 1 holds {FEW}.\n\n")
    assert "It is so." in theirs and "Faster." not in theirs
    assert ours.startswith(f"\n\n- {WHERE}: 1 does not hold {FEW}.\n\n")
    assert "Faster." in ours and "It is so." not in ours
    alone = replace(study, claims=tuple(one for one in study.claims if one.ours))
    assert claims_of(StudyFacts(read(tmp_path, alone), alone), place).startswith("**Ours:**")


def test_page_can_show_claims_by_their_ids(tmp_path: Path, place: Place) -> None:
    target = {"id": "target", "says": "Faster.", "ours": True, "test": {**SPEEDUP, "at_least": 9}}
    study = write_study(tmp_path, target, claim(**SPEEDUP))
    measure(tmp_path / "results", study)
    facts = StudyFacts(read(tmp_path, study), study)
    page = claims_of(facts, place, ["target"])
    assert "Faster." in page and "It is so." not in page
    assert page.startswith(f"- {WHERE}: "), "that its threshold is younger"
    rows = facts.inputs.tables["claims"].assign(bound="before")
    older = claims_of(StudyFacts(facts.inputs.with_tables(claims=rows), study), place, ["target"])
    assert older.startswith("<div") and "Ours" not in page + older
    assert "**Of the write-up:**" in claims_of(facts, place, ["it"])
    with pytest.raises(FieldError, match=r"claims of copy: expected .*target.*, got 'else'"):
        claims_of(facts, place, ["else"])


def test_many_claims_are_folded_except_in_the_ledger(tmp_path: Path, place: Place) -> None:
    many = [{**claim(**SPEEDUP), "id": f"it_{index}"} for index in range(IN_VIEW + 1)]
    study = write_study(tmp_path, *many)
    measure(tmp_path / "results", study)
    facts = StudyFacts(read(tmp_path, study), study)
    expected = f"<summary>The {len(many)} claims</summary>"
    page = claims_of(facts, place)
    assert expected in page
    assert page.index(expected) < page.index('id="copy-it_0"')
    assert expected not in ledger({"copy": facts}, {}, place)
    few = replace(study, claims=study.claims[1:])
    assert "claims</summary>" not in claims_of(StudyFacts(facts.inputs, few), place)


def test_of_many_parts_the_nearest_to_failing_is_in_view(tmp_path: Path, place: Place) -> None:
    part = {"kind": "speedup", "of": "fast", "over": "slow"}
    bounds = [3.0, 3.9, 2.0, 1.0]
    other = {"kind": "figure", "of": "slow", "metric": "sms_used", "case": "rows=2", "at_most": 15}
    parts = [*({**part, "at_least": bound} for bound in bounds), other]
    study = write_study(tmp_path, {"id": "it", "says": "All.", "all": parts})
    measure(tmp_path / "results", study)
    claims_of(StudyFacts(read(tmp_path, study), study), place)
    view, _, more = folded(place, "it").partition("<summary>and 4 more</summary>")
    assert "slow sms_used in rows=2: 16, not at most 15" in view
    assert re.findall(r"at least ([\d.]+)", more) == ["3.9", "3", "2", "1"]
    study = write_study(tmp_path, {"id": "it", "says": "All.", "all": parts[:4]})
    claims_of(StudyFacts(read(tmp_path, study), study), place)
    assert "<summary>" not in folded(place, "it")


def test_a_reason_is_one_part_whatever_is_in_it(tmp_path: Path, place: Place) -> None:
    parts = [{"kind": "correct", "of": "fast"}, {**SPEEDUP, "over": "slow"}]
    study = write_study(tmp_path, {"id": "it", "says": "Both.", "all": parts})
    results = tmp_path / "results"
    measure(results, study, {"slow": 8e-3})
    fast = samples_of(study, study.variant("fast"), run=NEW)
    wrong = [
        replace(s, value=None, verified=0, status="failed", reason="byte 3; 5 are wrong")
        for s in fast
    ]
    add_samples(results, study, "fast", wrong, NEW)
    claims_of(StudyFacts(read(tmp_path, study), study), place)
    cells = "fast: failed its check: byte 3; 5 are wrong<br>fast over slow: fast failed its check:"
    assert cells in folded(place, "it")


def test_claims_are_listed_before_anything_is_measured(tmp_path: Path, place: Place) -> None:
    study = write_study(tmp_path, claim(**SPEEDUP))
    claims_of(StudyFacts(read(tmp_path, study), study), place)
    assert "no machine has been measured" in folded(place, "it")
    none = replace(study, claims=())
    assert claims_of(StudyFacts(read(tmp_path, none), none), place) == "This study tests no claims."


def test_short_list_of_claims_only_names_the_untested(tmp_path: Path, place: Place) -> None:
    later = {"id": "later", "says": "Later.", "untested": "needs four GPUs"}
    study = write_study(tmp_path, claim(**SPEEDUP), later)
    measure(tmp_path / "results", study)
    facts = StudyFacts(read(tmp_path, study), study)
    tested = study.claims[0].id
    passing, every = claims_of(facts, place, [tested, "later"]), claims_of(facts, place)
    assert passing.endswith('Not tested: <a href="../ledger/#copy-later">Later.</a>')
    assert study.claims[0].says in passing
    assert 'id="copy-later"' in every and "Later." in every
