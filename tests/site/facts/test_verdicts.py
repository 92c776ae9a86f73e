"""Words on pages for claims that their figures do not decide."""

from __future__ import annotations

import math
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest

from analysis.site.facts.rows import ClaimPartRow, ClaimRow
from analysis.site.facts.verdicts import UNDECIDED, Verdicts, judges_phrase
from analysis.study.claims.verdicts import AFTERWARDS, BEFORE, FAILS, NOT_TESTED
from tests.synthetic import COPY

UNKNOWN = math.nan


@pytest.mark.parametrize(
    ("judged", "verdict", "shown"),
    [
        ((1.0, 2.0), NOT_TESTED, UNDECIDED),
        ((1.0, UNKNOWN), NOT_TESTED, NOT_TESTED),
        ((UNKNOWN, UNKNOWN), NOT_TESTED, NOT_TESTED),
        ((1.0, 2.0), FAILS, FAILS),
    ],
)
def test_claim_is_undecided_if_judging_runs_measured_all_parts(
    judged: tuple[float, ...], verdict: str, shown: str
) -> None:
    place = (COPY.name, "it", "box")
    parts = [
        ClaimPartRow(
            *(*place, number, "", NOT_TESTED, "", UNKNOWN, 1.0, UNKNOWN, UNKNOWN, "1", ""),
            judged=one,
        )
        for number, one in enumerate(judged, start=1)
    ]
    row = ClaimRow(*place, verdict, "", UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, "1", "")
    claims, of_claim = pd.DataFrame([asdict(row)]), pd.DataFrame(map(asdict, parts))
    inputs = SimpleNamespace(tables={"claims": claims, "claim_parts": of_claim})
    assert Verdicts(cast(Any, inputs), COPY).shown(row) == shown


@pytest.mark.parametrize(
    ("bound", "runs", "judging", "said"),
    [
        (BEFORE, 1, 0, "one run, made before the threshold was fixed"),
        (BEFORE, 2, 0, "2 runs, made before the threshold was fixed"),
        (
            *(BEFORE, 4, 1),
            "verdict from the one of 4 runs made after we fixed the threshold",
        ),
        (
            *(BEFORE, 7, 5),
            "verdict from the 5 of 7 runs made after we fixed the threshold",
        ),
        (BEFORE, 5, 5, ""),
        (AFTERWARDS, 5, 0, ""),
    ],
)
def test_runs_older_than_the_threshold_are_counted(
    bound: str, runs: int, judging: int, said: str
) -> None:
    figures = (UNKNOWN,) * 4
    row = ClaimRow(
        *(COPY.name, "it", "box", FAILS, "", *figures, "1", ""),
        bound=bound,
        runs=runs,
        judging=judging,
    )
    assert judges_phrase(row) == said
