"""What a comparison may ask of the results of one study on one machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from analysis.study.claims.verdicts import Figure

if TYPE_CHECKING:
    import pandas as pd


class Statement(NamedTuple):
    """A printed figure: the number as text, its unit as printed and as meant, who printed it, and
    the payload rate in B/s that it comes to, NaN where it says nothing of one."""

    variant: str
    case: str
    printed: str
    unit_printed: str
    unit_meant: str
    source: str
    rate: float


class Check(NamedTuple):
    """In how many rounds of all runs the output was right, and what is wrong with the first that is
    not."""

    rounds: int
    fault: str = ""


class Evidence(Protocol):
    """The results of one study on one machine, fresh and checked. Every method raises NotTested,
    with the reason, where they do not have what is asked for."""

    @property
    def statements(self) -> Sequence[Statement]:
        """What has been printed of the study's variants."""

    def visits(self, variant: str, case: str, metric: str) -> pd.Series:
        """The metric in its unit by run, round and visit."""

    def times(self, variants: Sequence[str], case: str, metric: str) -> Sequence[pd.Series]:
        """Seconds of each of the variants by run, round and visit, all by the same metric: the
        preferred one that all have, where `metric` is empty."""

    def over_rounds(self, by_visit: pd.Series) -> Figure:
        """The figure over all runs in `by_visit`, as `statistics.estimate` makes it."""

    def over_runs(self, by_visit: pd.Series) -> Figure:
        """The mean over all runs in `by_visit`, as `statistics.mean_estimate` makes it."""

    def payload(self, variant: str, case: str) -> int:
        """Bytes that one operation delivers, more than 0."""

    def published_seconds(self, variant: str, case: str, metric: str = "") -> float:
        """The published time of one operation, NaN if there is none, or none by `metric`."""

    def predicted_seconds(self, variant: str, case: str, metric: str) -> float:
        """The link model's time by `metric`, or by the study's first where that is empty."""

    def count(self, variant: str, case: str, counter: str) -> float:
        """A hardware counter of one operation, over all of its kernels."""

    def check(self, variant: str, case: str) -> Check:
        """What the check of the outputs found in the runs that a summary uses."""
