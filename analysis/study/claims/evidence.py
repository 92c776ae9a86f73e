"""Figures of one study on one machine that a comparison may use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from analysis.base.statistics import TIME, Kind
from analysis.study.claims.verdicts import Figure

if TYPE_CHECKING:
    import pandas as pd


class Statement(NamedTuple):
    """A printed figure: the number as text, its unit as printed and as meant, its source, and the
    payload rate in B/s; NaN if it implies none."""

    variant: str
    case: str
    printed: str
    unit_printed: str
    unit_meant: str
    source: str
    rate: float


class Check(NamedTuple):
    """Runs with checked output, the number of their rounds with correct output, and the first
    fault."""

    runs: frozenset[str]
    rounds: int
    fault: str = ""


class Evidence(Protocol):
    """Fresh, checked results of one study on one machine. Every method raises NotTested, with the
    reason, if the figure is missing."""

    @property
    def statements(self) -> Sequence[Statement]:
        """Printed figures of the study's variants."""

    def visits(self, variant: str, case: str, metric: str) -> pd.Series:
        """The metric in its unit by run, round and visit."""

    def times(self, variants: Sequence[str], case: str, metric: str) -> Sequence[pd.Series]:
        """Seconds of each variant by run, round and visit, in one metric. If `metric` is empty, it
        is the preferred one that all variants have."""

    def kind(self, metric: str) -> Kind:
        """The kind of values of a metric."""

    def kind_of_ratios(self, metric: str) -> Kind:
        """The kind of ratios of a metric, or of times if `metric` is empty."""

    def over_rounds(self, by_visit: pd.Series, kind: Kind = TIME) -> Figure:
        """The figure over all runs in `by_visit`, by `statistics.estimate`."""

    def over_hosts(self, by_visit: pd.Series, kind: Kind = TIME) -> Figure:
        """The mean over the hosts in `by_visit`, by `statistics.mean_estimate`."""

    def payload(self, variant: str, case: str) -> int:
        """Bytes that one operation delivers, more than 0."""

    def published_seconds(self, variant: str, case: str, metric: str = "") -> float:
        """Published time of one operation; NaN if there is none in `metric`."""

    def predicted_seconds(self, variant: str, case: str, metric: str) -> float:
        """Predicted time in `metric`; in the study's first time metric if that is empty."""

    def count(self, variant: str, case: str, counter: str) -> float:
        """Hardware counter of one operation, summed over its kernels."""

    def check(self, variant: str, case: str) -> Check:
        """Result of the output checks in the runs of the summary."""
