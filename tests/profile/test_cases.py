"""Which variants are captured, and in which case."""

from __future__ import annotations

import pytest

from analysis.errors import FieldError
from analysis.profile.__main__ import variants_by_case
from tests.repository import STUDIES

POOLS = STUDIES["pool_gather"]
LARGE, DISTINCT = (captured.case for captured in POOLS.captured)


def names_by_case(asked: str | None = None) -> dict[str, list[str]]:
    found = variants_by_case(POOLS, POOLS.variants, asked)
    return {case: [variant.name for variant in variants] for case, variants in found.items()}


def test_each_variant_is_captured_in_the_first_case_that_it_has() -> None:
    found = names_by_case()
    assert {"loads_first", "sorted"} <= set(found[LARGE])
    assert {"packed_by_cpu", "both_engines"} <= set(found[DISTINCT])
    assert not set(found[LARGE]) & set(found[DISTINCT])
    assert set(found) == {LARGE, DISTINCT}


def test_all_that_have_the_case_asked_for_are_captured_in_it() -> None:
    found = names_by_case(DISTINCT)
    assert list(found) == [DISTINCT]
    assert {"loads_first", "packed_by_cpu"} <= set(found[DISTINCT])


def test_a_case_that_nobody_has_is_refused() -> None:
    with pytest.raises(FieldError, match="case: expected one that a variant of pool_gather has"):
        names_by_case("rows=1")
