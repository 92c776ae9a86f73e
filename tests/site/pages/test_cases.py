"""Cases in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.site.pages.cases import binary, case_phrase
from tests.repository import STUDIES

WORDS = {
    "count=1": "one piece",
    "count": "{} pieces",
    "size": "of {bytes}",
    "host": ", {} on the host",
    "busy=0": ", idle stream",
}
STUDY = replace(STUDIES["transfers"], case_words=WORDS)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (
            "size=28672,count=1024,host=scattered,busy=0",
            "with 1\u202f024 pieces of 28 KiB, scattered on the host, idle stream",
        ),
        ("size=67108864,count=1", "with one piece of 64 MiB"),
        ("size=656,count=16,busy=1,threads=4", "with 16 pieces of 656 B, `busy=1`, `threads=4`"),
        ("rows=4", "in case `rows=4`"),
    ],
)
def test_a_case_has_the_words_of_its_study(case: str, expected: str) -> None:
    assert case_phrase(STUDY, case) == expected


def test_every_listed_case_of_transfers_has_words() -> None:
    study = STUDIES["transfers"]
    cases = {case.id for variant in study.variants for case in variant.cases}
    listed = [case for case in cases if "busy=" in case]
    assert listed and not any("`" in case_phrase(study, case) for case in listed)


@pytest.mark.parametrize(("size", "text"), [(1, "1 B"), (1536, "1\u202f536 B"), (2**30, "1 GiB")])
def test_sizes_are_in_the_largest_whole_unit(size: int, text: str) -> None:
    assert binary(size) == text
