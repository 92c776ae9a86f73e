"""Findings in study.yaml, and errors in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis.base.errors import FieldError
from analysis.study.claims.claim import BEARINGS
from tests.study.claims.studies import SPEEDUP, write_study

FINDING = {"belief": "All are equal.", "verdict": "holds", "headline": "One is {measured} faster."}
CLAIM = {"id": "speed", "says": "One is faster.", "test": SPEEDUP}


def test_a_claim_has_the_finding_of_study_yaml(tmp_path: Path) -> None:
    (claim,) = write_study(tmp_path, CLAIM | {"finding": FINDING}).claims
    assert claim.finding is not None
    assert claim.finding.sentence({"measured": "2×", "published": ""}) == "One is 2× faster."


def test_finding_without_bears_on_comes_last(tmp_path: Path) -> None:
    entries = [*(FINDING | {"bears_on": one} for one in BEARINGS), FINDING]
    claims = [
        {"id": f"speed_{place}", "says": "One is faster.", "test": SPEEDUP, "finding": entry}
        for place, entry in enumerate(entries)
    ]
    found = [claim.finding for claim in write_study(tmp_path, *claims).claims]
    assert [one.precedence for one in found if one is not None] == [0, 1, 2, 2]
    with pytest.raises(FieldError, match="bears_on"):
        write_study(tmp_path, claims[0] | {"finding": FINDING | {"bears_on": "taste"}})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(
            ({"headline": text}, r"\.finding: expected a headline with only .*measured.* in braces")
            for text in ("{best}", "{", "{}", "{measured:d}", "{measured!r}")
        ),
        ({"part": 2}, ": expected a finding of a part of the claim, 1 to 1, got 2"),
    ],
)
def test_a_mistake_names_its_field(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(FieldError, match=rf"claims\.speed{message}"):
        write_study(tmp_path, {**CLAIM, "finding": {**FINDING, **change}})
