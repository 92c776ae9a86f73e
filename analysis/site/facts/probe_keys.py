"""Keys of the output of `tools/reach.cu` with `--json`."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from analysis.base.keys import Fault
from analysis.results.store.keys import Amount, Count, Keys, Positive

LIMIT_BYTES: Final = 200_000
"""Maximum size of a file."""
ROUNDING: Final = 0.02
"""Relative rounding error of a product of printed figures."""

GpuName = Annotated[str, Field(max_length=100, pattern="^[A-Za-z0-9 ()./+-]*$")]
Ascii = Annotated[str, Field(max_length=1000, pattern="^[ -~]*$")]
Seconds = Annotated[float, Field(ge=0, le=1)]


class ReachKeys(Keys):
    """The output of `tools/reach.cu` with `--json`; null marks unknown figures.

    `pools` are pool_bytes, bytes_per_s, predicted_bytes_per_s and reads_per_s of each pool.
    """

    gpu: GpuName
    sm: Annotated[int, Field(ge=10, le=999)]
    host_page_tables: Literal[0, 1]
    pool_bytes: Count
    held: Positive | None
    covers_bytes: Count | None
    reach_bytes: Positive | None
    walks_per_s: Positive | None
    walk_s: Seconds | None
    doubling_s: Seconds | None
    fit_error: Amount | None
    row_bytes: Count
    advice: Ascii
    pools: Annotated[
        list[Annotated[list[Positive], Field(min_length=4, max_length=4)]],
        Field(min_length=1, max_length=100),
    ]

    @model_validator(mode="after")
    def _agrees(self) -> ReachKeys:
        if None not in (self.held, self.covers_bytes, self.reach_bytes):
            product = (self.held or 0) * (self.covers_bytes or 0)
            if abs((self.reach_bytes or 0) - product) > ROUNDING * product:
                raise Fault(f"reach_bytes {product:g}, held times covers_bytes", self.reach_bytes)
        return self
