"""Selection of captured variants and their cases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.base.errors import FieldError
from analysis.measure.profile.__main__ import variants_by_case
from analysis.study import Case
from analysis.study.description import Captured
from tests.synthetic import COPY

FIRST, SECOND, OTHER = (Case({"rows": rows}, 0, "default") for rows in (1, 2, 3))
HAS_ALL, HAS_SECOND, HAS_NEITHER = (
    replace(variant, cases=cases)
    for variant, cases in zip(
        COPY.variants, ((SECOND, OTHER, FIRST), (OTHER, SECOND), (OTHER,)), strict=False
    )
)
VARIANTS = (HAS_ALL, HAS_SECOND, HAS_NEITHER)
STUDY = replace(COPY, captured=tuple(Captured(case.id, {}) for case in (FIRST, SECOND)))


def test_each_variant_is_captured_in_the_first_case_that_it_has() -> None:
    found = variants_by_case(STUDY, VARIANTS, None)
    assert found == {FIRST.id: [HAS_ALL], SECOND.id: [HAS_SECOND]}


def test_all_variants_with_the_requested_case_are_captured() -> None:
    assert variants_by_case(STUDY, VARIANTS, SECOND.id) == {SECOND.id: [HAS_ALL, HAS_SECOND]}


def test_unknown_case_is_rejected() -> None:
    with pytest.raises(FieldError, match="case: expected one that a variant of copy has"):
        variants_by_case(STUDY, VARIANTS, "rows=4")
