"""Reads of host memory by a variant: the `link` of study.yaml, evaluated for one case."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.base.errors import FieldError, require_known
from analysis.base.expression import evaluate
from analysis.base.keys import key, keys_of
from analysis.study.description import Case, Variant

Floats = npt.NDArray[np.float64]

WORDS: Final[Mapping[str, tuple[str, re.Pattern[str]]]] = {
    "layout": (
        "scattered, distinct, repeated, contiguous or pages_<rows>",
        re.compile(r"scattered|distinct|repeated|contiguous|pages_[1-9][0-9]*"),
    ),
    "order": ("random or ascending", re.compile(r"random|ascending")),
}
"""Keys with a word as value, or with a key of the case that has one: the words and their form."""

READS: Final = ("warp_rows", "thread_rows", "contiguous", "copy_engine")
_ROWS: Final = READS[:2]
_SMS: Final = READS[:3]
_POOL: Final = READS[:1]
"""Ways of reading whose rows may lie in a pool, for the model's term of address translation."""


@dataclass(frozen=True)
class Access:
    """The reads of one operation, by the keys of a `link` in study.yaml.

    `needed` and `optional` of a key are the ways of reading that it goes with. A warp's loads split
    a row every `access_bytes`, or every 512 bytes if that is 0. If no two loads share a line,
    `access_bytes` is the row. Row r starts at r * stride_bytes + offset_bytes, a range at any
    multiple of stride_bytes.
    """

    reads: str = key(
        "A warp reads a row together, a thread reads a row alone, or the SMs or the copy engine"
        " read one range.",
        needed=READS,
    )
    payload_bytes: int = key(
        "Bytes that come over the link; by default the case's payload.", optional=_POOL
    )
    row_bytes: int = key("Bytes of a row.", 0, needed=_ROWS)
    stride_bytes: int = key(
        "Distance between the starts of two rows; 0, the default, means row_bytes. A range starts"
        " at any multiple of it, by default at a line.",
        0,
        optional=_SMS,
    )
    offset_bytes: int = key("Added to the start of every row.", 0, optional=_ROWS)
    access_bytes: int = key(
        "Bytes of a row that one load instruction covers; 512 for a warp unless its lanes are"
        " shifted.",
        0,
        needed=("thread_rows",),
        optional=("warp_rows",),
    )
    in_flight_bytes: int = key(
        "Bytes that a warp has outstanding at a time; by default the row it reads.",
        0,
        needed=("thread_rows", "contiguous"),
        optional=("warp_rows",),
    )
    warps: int = key(
        "Number of warps launched; 0, the default, means as many as the payload keeps busy.",
        0,
        optional=_SMS,
    )
    pool_bytes: int = key(
        "Bytes of the pool that the rows lie in; needed where address translation may limit.",
        0,
        optional=_POOL,
    )
    layout: str = key(
        "How the rows of a launch lie in the pool, or the key of the case that says it:"
        " `scattered`, `distinct`, `repeated` (the same rows in every launch), `contiguous` (each"
        " `request_rows` within one stretch of `stretch_rows`) or `pages_<rows>` (runs of that many"
        " rows).",
        "scattered",
        optional=_POOL,
    )
    order: str = key(
        "`random` or `ascending`, or the key of the case that says it.", "random", optional=_POOL
    )
    order_from_rows: int = key(
        "Launches of fewer rows are in random order all the same.", 0, optional=_POOL
    )
    streaming: int = key(
        "1 if rows are moved with the hint that they are not used again.", 0, optional=_POOL
    )
    request_rows: int = key(
        "In the layout `contiguous`, rows that lie within one stretch.", 0, optional=_POOL
    )
    stretch_rows: int = key(
        "In the layout `contiguous`, slots of such a stretch.", 0, optional=_POOL
    )

    @property
    def rows(self) -> int:
        return self.payload_bytes // self.row_bytes

    @property
    def run_rows(self) -> int:
        """Number of adjacent rows that are read in sequence."""
        return int(self.layout.removeprefix("pages_")) if self.layout.startswith("pages_") else 1

    @property
    def is_ascending(self) -> bool:
        return self.order == "ascending" and self.rows >= self.order_from_rows


def keys_for(reads: str, use: str) -> set[str]:
    """The keys that a `link` with this way of reading has: `use` is `needed` or `optional`."""
    keys = keys_of(Access).items()
    return {name for name, one in keys if reads in one.metadata.get(use, ()) and name != "reads"}


def access_of(variant: Variant, case: Case, where: str = "link") -> Access | None:
    """The reads of `variant` in `case`; None if study.yaml has no `link` for it.

    A stride of 0, or none, means rows without gaps. By default, a warp has the row it reads in
    flight. FieldError names a key, below `where`, that is missing, not allowed, not whole-number
    arithmetic of the case's keys and the variant's constants, or not one of its WORDS. A study is
    refused when it is loaded, so of one that is, none is raised.
    """
    link = variant.link
    if link is None:
        return None
    reads = str(link.get("reads"))
    require_known(f"{where}.reads", reads, READS)
    given = set(link) - {"reads"}
    needed, optional = keys_for(reads, "needed"), keys_for(reads, "optional")
    if not needed <= given <= needed | optional:
        expected = f"{sorted(needed)} and of {sorted(optional)} for {reads}"
        raise FieldError(where, expected, sorted(given))
    numbers: dict[str, Any] = {
        key: _number(
            link[key],
            {**variant.constants, **case.values},
            f"{where}.{key}",
            positive=key in needed,
        )
        for key in given - set(WORDS)
    }
    if reads in ("warp_rows", "thread_rows"):
        for key in ("stride_bytes", "in_flight_bytes"):
            numbers[key] = numbers.get(key) or numbers["row_bytes"]
    access = Access(reads, **{"payload_bytes": case.payload_bytes, **numbers})
    words: dict[str, Any] = {
        key: _word(key, link[key], case, f"{where}.{key}") for key in given & set(WORDS)
    }
    access = replace(access, **words)
    if access.layout == "contiguous" and not (access.request_rows and access.stretch_rows):
        expected = "request_rows and stretch_rows above 0, as the layout is contiguous"
        raise FieldError(where, expected, sorted(given))
    return access


def _number(written: str | int, names: Mapping[str, object], where: str, *, positive: bool) -> int:
    try:
        number = evaluate(written, names)
    except ValueError as error:
        expected = f"whole-number arithmetic of the case and the constants ({error})"
        raise FieldError(where, expected, written) from error
    if number < positive:
        raise FieldError(where, f"a number of at least {int(positive)}", number)
    return number


def _word(key: str, written: str | int, case: Case, where: str) -> str:
    expected, form = WORDS[key]
    word = str(case.values.get(str(written), written))
    if not form.fullmatch(word):
        raise FieldError(where, f"{expected}, or a key of the case that says it", word)
    return word
