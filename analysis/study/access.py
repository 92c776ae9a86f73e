"""Reads of host memory by a variant: the `link` of study.yaml, evaluated for one case."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from analysis.base.errors import FieldError, require_known
from analysis.base.expression import evaluate
from analysis.base.keys import KEYS
from analysis.study.description import Case, Variant

Floats = npt.NDArray[np.float64]

WORDS: Final = {
    "layout": r"scattered|distinct|repeated|contiguous|pages_[1-9][0-9]*",
    "order": "random|ascending",
}
"""Keys with a word as value, or with a key of the case that has one, and the form of the words."""


@dataclass(frozen=True)
class Access:
    """The reads of one operation, by the keys of a `link` in study.yaml.

    A warp's loads split a row every `access_bytes`, or every 512 bytes if that is 0. If no two
    loads share a line, `access_bytes` is the row. Row r starts at r * stride_bytes + offset_bytes,
    a range at any multiple of stride_bytes. `pool_bytes` and the keys after it are for the model's
    term of address translation.
    """

    __pydantic_config__: ClassVar = KEYS

    reads: str
    """A warp reads a row together, a thread reads a row alone, or the SMs or the copy engine read
    one range."""
    payload_bytes: int
    """Bytes that come over the link; by default the case's payload."""
    row_bytes: int = 0
    """Bytes of a row."""
    stride_bytes: int = 0
    """Distance between the starts of two rows; 0, the default, means row_bytes. A range starts at
    any multiple of it, by default at a line."""
    offset_bytes: int = 0
    """Added to the start of every row."""
    access_bytes: int = 0
    """Bytes of a row that one load instruction covers; 512 for a warp unless its lanes are
    shifted."""
    in_flight_bytes: int = 0
    """Bytes that a warp has outstanding at a time; by default the row it reads."""
    warps: int = 0
    """Number of warps launched; 0, the default, means as many as the payload keeps busy."""
    pool_bytes: int = 0
    """Bytes of the pool that the rows lie in; needed where address translation may limit."""
    layout: str = "scattered"
    """How the rows of a launch lie in the pool, or the key of the case that says it: `scattered`,
    `distinct`, `repeated` (the same rows in every launch), `contiguous` (each `request_rows` within
    one stretch of `stretch_rows`) or `pages_<rows>` (runs of that many rows)."""
    order: str = "random"
    """`random` or `ascending`, or the key of the case that says it."""
    order_from_rows: int = 0
    """Launches of fewer rows are in random order all the same."""
    streaming: int = 0
    """1 if rows are moved with the hint that they are not used again."""
    request_rows: int = 0
    """In the layout `contiguous`, rows that lie within one stretch."""
    stretch_rows: int = 0
    """In the layout `contiguous`, slots of such a stretch."""

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


READS: Final[Mapping[str, tuple[set[str], set[str]]]] = {
    "warp_rows": ({"row_bytes"}, {one.name for one in fields(Access)} - {"reads", "row_bytes"}),
    "thread_rows": (
        {"row_bytes", "access_bytes", "in_flight_bytes"},
        {"stride_bytes", "offset_bytes", "warps"},
    ),
    "contiguous": ({"in_flight_bytes"}, {"stride_bytes", "warps"}),
    "copy_engine": (set(), set()),
}
"""Keys that a `link` must have, and those that it may have, by its way of reading."""


def access_of(variant: Variant, case: Case, where: str = "link") -> Access | None:
    """The reads of `variant` in `case`; None if study.yaml has no `link` for it.

    FieldError names a key, below `where`, that is missing, not allowed, not whole-number arithmetic
    of the case's keys and the variant's constants, or not one of its WORDS. Loading a study raises
    it, so that a loaded study never does.
    """
    if variant.link is None:
        return None
    link: dict[str, Any] = {**variant.link}
    reads = link.pop("reads", None)
    require_known(f"{where}.reads", reads, READS)
    needed, optional = READS[reads]
    if not needed <= {*link} <= needed | optional:
        expected = f"{sorted(needed)} and of {sorted(optional)} for {reads}"
        raise FieldError(where, expected, sorted(link))
    names = {**variant.constants, **case.values}
    values: dict[str, Any] = {"payload_bytes": case.payload_bytes}
    for key, value in link.items():
        if form := WORDS.get(key):
            values[key] = str(case.values.get(str(value), value))
            if not re.fullmatch(form, values[key]):
                raise FieldError(f"{where}.{key}", f"{form} or a key of the case", values[key])
        else:
            values[key] = evaluate(value, names, f"{where}.{key}", int(key in needed))
    for key in ("stride_bytes", "in_flight_bytes") if "row_bytes" in values else ():
        values[key] = values.get(key) or values["row_bytes"]
    access = Access(reads, **values)
    if access.layout == "contiguous" and not (access.request_rows and access.stretch_rows):
        expected = "request_rows and stretch_rows above 0, as the layout is contiguous"
        raise FieldError(where, expected, sorted(link))
    return access
