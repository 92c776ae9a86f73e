"""How a variant reads host memory: the `link` block of study.yaml, evaluated for one case."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.errors import FieldError
from analysis.expression import evaluate
from analysis.study import Case, Variant

Floats = npt.NDArray[np.float64]

POOL: Final = {
    *("pool_bytes", "layout", "order", "order_from_rows"),
    *("streaming", "request_rows", "stretch_rows"),
}
"""Keys that say where the rows lie, for the model's term of address translation."""
WORDS: Final = ("layout", "order")
"""Keys whose value is a word, or a key of the case that has one."""

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


def access_of(variant: Variant, case: Case) -> Access | None:
    """How `variant` reads in `case`; None if study.yaml has no `link` for it.

    A stride of 0, or none, means rows without gaps. By default, a warp has the row it reads in
    flight. FieldError names a key that is missing, not allowed, or not whole-number arithmetic of
    the case's keys and the variant's constants.
    """
    if variant.link is None:
        return None
    where = f"variants.{variant.name}.link"
    reads = str(variant.link["reads"])
    given = set(variant.link) - {"reads"}
    allowed = NEEDED[reads] | OPTIONAL[reads]
    if not NEEDED[reads] <= given <= allowed:
        expected = f"{sorted(NEEDED[reads])} and of {sorted(OPTIONAL[reads])} for {reads}"
        raise FieldError(where, expected, sorted(given))
    numbers: dict[str, Any] = {
        key: _number(variant, case, key, positive=key in NEEDED[reads])
        for key in given - set(WORDS)
    }
    if reads in ("warp_rows", "thread_rows"):
        for key in ("stride_bytes", "in_flight_bytes"):
            numbers[key] = numbers.get(key) or numbers["row_bytes"]
    access = Access(reads, **{"payload_bytes": case.payload_bytes, **numbers})
    words: dict[str, Any] = {key: _word(variant, case, key) for key in given & set(WORDS)}
    return replace(access, **words)


def _number(variant: Variant, case: Case, key: str, *, positive: bool) -> int:
    assert variant.link is not None
    where, written = f"variants.{variant.name}.link.{key}", variant.link[key]
    try:
        number = evaluate(written, {**variant.constants, **case.values})
    except ValueError as error:
        expected = f"whole-number arithmetic of the case and the constants ({error})"
        raise FieldError(where, expected, written) from error
    if number < positive:
        raise FieldError(where, "a positive number", number)
    return number


def _word(variant: Variant, case: Case, key: str) -> str:
    assert variant.link is not None
    written = str(variant.link[key])
    return str(case.values.get(written, written))
