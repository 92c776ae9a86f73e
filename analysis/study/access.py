"""How a variant reads host memory: the `link` block of study.yaml, evaluated for one case."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.base.errors import FieldError
from analysis.base.expression import evaluate
from analysis.study.description import Case, Variant

Floats = npt.NDArray[np.float64]

POOL: Final = {
    *("pool_bytes", "layout", "order", "order_from_rows"),
    *("streaming", "request_rows", "stretch_rows"),
}
"""Keys that say where the rows lie, for the model's term of address translation."""
WORDS: Final[Mapping[str, tuple[str, re.Pattern[str]]]] = {
    "layout": (
        "scattered, distinct, repeated, contiguous or pages_<rows>",
        re.compile(r"scattered|distinct|repeated|contiguous|pages_[1-9][0-9]*"),
    ),
    "order": ("random or ascending", re.compile(r"random|ascending")),
}
"""Keys whose value is a word, or a key of the case that has one: those words, and their form."""

NEEDED: Final = {
    "warp_rows": {"row_bytes"},
    "thread_rows": {"row_bytes", "access_bytes", "in_flight_bytes"},
    "contiguous": {"in_flight_bytes"},
    "copy_engine": set[str](),
}
OPTIONAL: Final = {
    "warp_rows": {
        *("stride_bytes", "offset_bytes", "access_bytes", "in_flight_bytes", "warps"),
        *("payload_bytes", *POOL),
    },
    "thread_rows": {"stride_bytes", "offset_bytes", "warps"},
    "contiguous": {"stride_bytes", "warps"},
    "copy_engine": set[str](),
}
"""Keys of a `link` by what it says of `reads`."""


@dataclass(frozen=True)
class Access:
    """The reads of one operation. Sizes are in bytes. `payload_bytes` are those that come over the
    link, by default the case's payload.

    `reads` is `warp_rows` (a warp reads a row together), `thread_rows` (each thread reads its own
    row, `access_bytes` per load), `contiguous` (the SMs read one range) or `copy_engine`. A warp's
    loads split a row every `access_bytes`, or every 512 bytes if that is 0. If no two loads share a
    line, `access_bytes` is the row.
    Row r starts at r * stride_bytes + offset_bytes, a range at any multiple of stride_bytes. A warp
    has `in_flight_bytes` outstanding.
    `warps` is the number of warps launched; 0 means as many as the payload keeps busy.

    Where translation matters, the rows lie in a pool of `pool_bytes`, by `layout`: `scattered`,
    `distinct`, `repeated` (the same rows in every launch), `pages_<rows>` (runs of so many), or
    `contiguous` (each `request_rows` within one stretch of `stretch_rows`). `order` is `random`, or
    `ascending` for launches of at least `order_from_rows`. `streaming` is 1 if rows are moved with
    the hint that they are not used again.
    """

    reads: str
    payload_bytes: int
    row_bytes: int = 0
    stride_bytes: int = 0
    offset_bytes: int = 0
    access_bytes: int = 0
    in_flight_bytes: int = 0
    warps: int = 0
    pool_bytes: int = 0
    layout: str = "scattered"
    order: str = "random"
    order_from_rows: int = 0
    streaming: int = 0
    request_rows: int = 0
    stretch_rows: int = 0

    @property
    def rows(self) -> int:
        return self.payload_bytes // self.row_bytes

    @property
    def run_rows(self) -> int:
        """How many rows that lie one behind the other are read one after the other."""
        return int(self.layout.removeprefix("pages_")) if self.layout.startswith("pages_") else 1

    @property
    def is_ascending(self) -> bool:
        return self.order == "ascending" and self.rows >= self.order_from_rows


def access_of(variant: Variant, case: Case, where: str = "link") -> Access | None:
    """How `variant` reads in `case`; None if study.yaml has no `link` for it.

    A stride of 0, or none, means rows without gaps. By default, a warp has the row it reads in
    flight. FieldError names a key, below `where`, that is missing, not allowed, not whole-number
    arithmetic of the case's keys and the variant's constants, or not one of its WORDS. A study is
    refused when it is loaded, so of one that is, none is raised.
    """
    link = variant.link
    if link is None:
        return None
    reads = str(link["reads"])
    given = set(link) - {"reads"}
    allowed = NEEDED[reads] | OPTIONAL[reads]
    if not NEEDED[reads] <= given <= allowed:
        expected = f"{sorted(NEEDED[reads])} and of {sorted(OPTIONAL[reads])} for {reads}"
        raise FieldError(where, expected, sorted(given))
    numbers: dict[str, Any] = {
        key: _number(
            link[key],
            {**variant.constants, **case.values},
            f"{where}.{key}",
            positive=key in NEEDED[reads],
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
