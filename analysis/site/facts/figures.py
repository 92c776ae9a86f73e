"""One study's figures, comparisons and absences, looked up by machine, variant and case."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

import pandas as pd

from analysis.base.statistics import verdict
from analysis.results.store.published import best_statement
from analysis.site.facts.basis import figures_by_run, ruled
from analysis.site.facts.inputs import Inputs, RunFile
from analysis.site.facts.links import Chip, chips
from analysis.site.facts.rows import (
    MeasuredRow,
    PublishedRow,
    RatioRow,
    SkippedRow,
    rows_of,
    runs_text,
)
from analysis.study import Case, Study, Variant

WHOLE: Final = ("gpu_time", "host_time")
"""Clocks that every study means alike: until the operation is complete."""


def delivered_bytes(case: Case, metric: str) -> int:
    """The payload that a time delivers: none if it is a part of the operation, as a CPU time is."""
    return case.payload_bytes if metric in WHOLE else 0


class LimitShare(NamedTuple):
    """A rate as a share of that of `ceiling`, the fastest of the variant's in the same case."""

    share: float
    ceiling: str


@dataclass(frozen=True)
class Figures:
    """Measured figures of a study, and missing ones. Methods return None without a figure."""

    inputs: Inputs
    study: Study

    def table(self, name: str) -> pd.DataFrame:
        """Rows of a table about variants that the study has now."""
        table = self.inputs.tables[name]
        is_known = table["variant"].isin(self.study.variant_names)
        return table[(table["study"] == self.study.name) & is_known]

    @cached_property
    def machines(self) -> list[str]:
        """Machines with results of this study, skipped and failed cases included."""
        return sorted({*self.table("summary")["machine"], *self.table("skipped")["machine"]})

    @cached_property
    def chips(self) -> Mapping[str, Chip]:
        """The calibrated machines, by name."""
        return chips(self.inputs)

    @cached_property
    def measured(self) -> Mapping[tuple[str, str, str, str], MeasuredRow]:
        """Medians by machine, variant, case and metric."""
        rows = rows_of(ruled(self.table("summary")), MeasuredRow)
        return {(row.machine, row.variant, row.case, row.metric): row for row in rows}

    @cached_property
    def ratios(self) -> Mapping[tuple[str, str, str, str, str], RatioRow]:
        """Ratios by machine, variant, against, case and metric; ratios of payload rates if the two
        deliver different bytes."""
        table = self.table("ratios")
        rows = [*map(self._by_rate, rows_of(table, RatioRow))]
        table = ruled(pd.DataFrame(rows, columns=table.columns))
        return {
            (row.machine, row.variant, row.against, row.case, row.metric): row
            for row in rows_of(table, RatioRow)
        }

    def _by_rate(self, row: RatioRow) -> RatioRow:
        payload, other = self._payloads(row)
        if payload == other or not payload or not other:
            return row
        by_run = [one * payload / other for one in figures_by_run(row)]
        value, low, high = (one * payload / other for one in (row.ratio, row.ci_low, row.ci_high))
        decided = verdict(value, low, high, by_run)
        row = replace(row, ratio=value, ci_low=low, ci_high=high)
        return replace(row, verdict=decided, by_run=runs_text(by_run))

    def _payloads(self, row: RatioRow) -> list[int]:
        """Bytes that both variants of a ratio deliver in its case; 0 for one without that case."""
        names = (row.variant, row.against)
        return [self.study.payloads.get((name, row.case), 0) for name in names]

    @cached_property
    def skipped(self) -> Mapping[tuple[str, str, str], SkippedRow]:
        """Skipped and failed cases by machine, variant and case."""
        rows = rows_of(self.table("skipped"), SkippedRow)
        return {(row.machine, row.variant, row.case): row for row in rows}

    @cached_property
    def printed(self) -> list[PublishedRow]:
        """Published times and rates of the study's variants: the best statement of each source for
        a variant and case, by a metric of the study."""
        study = self.study
        return [
            row if row.metric in study.metrics else replace(row, metric=study.time_metrics[0])
            for row in rows_of(best_statement(self.inputs.published[study.name]), PublishedRow)
            if row.variant in study.variant_names and not math.isnan(row.seconds)
        ]

    @cached_property
    def are_rates(self) -> bool:
        """Whether every operation of every step delivers bytes, so that rates are shown."""
        shown = self.study.with_role("step", "beyond") or self.study.variants
        return all(case.payload_bytes > 0 for variant in shown for case in variant.cases)

    def fresh(self, *metrics: str) -> list[MeasuredRow]:
        """Fresh figures by any of these metrics."""
        rows = self.measured.values()
        return [row for row in rows if row.metric in metrics and not row.stale]

    def find(self, machine: str, variant: str, case: str, metric: str) -> MeasuredRow | None:
        return self.measured.get((machine, variant, case, metric))

    def by_fresh_run(self, machine: str, variant: str, case: str, metric: str) -> list[float]:
        """The figure of each run, oldest first; empty if it is stale or was not measured."""
        row = self.find(machine, variant, case, metric)
        return figures_by_run(row) if row is not None and not row.stale else []

    def by_run(self, row: MeasuredRow) -> list[tuple[RunFile, float]]:
        """The runs of a figure, oldest first, each with its median. Empty if the runs are not
        known, because it is stale or only some runs have this case."""
        runs = self.inputs.fresh_runs((row.machine, row.study, row.variant))
        medians = figures_by_run(row)
        is_known = not row.stale and len(runs) == len(medians)
        return list(zip(runs, medians, strict=True)) if is_known else []

    def metric(self, machine: str, variant: Variant, metric: str) -> MeasuredRow | None:
        """One metric in the shown case."""
        return self.find(machine, variant.name, self.study.shown_case(variant).id, metric)

    def time(self, machine: str, variant: Variant) -> MeasuredRow | None:
        """The time in the shown case, by the preferred metric that was measured."""
        return next(iter(self.times(machine, variant)), None)

    def times(self, machine: str, *variants: Variant) -> list[MeasuredRow]:
        """Times of all `variants` in the first one's shown case, by the preferred common metric
        that was measured for each; empty without one."""
        case = self.study.shown_case(variants[0]).id
        for metric in self.study.metrics_for(*variants):
            keys = [(machine, variant.name, case, metric) for variant in variants]
            if all(key in self.measured for key in keys):
                return [self.measured[key] for key in keys]
        return []

    def comparison(self, machine: str, variant: Variant, other: Variant) -> RatioRow | None:
        """The ratio in the shown case, by the preferred metric that compares the two."""
        metrics = self.study.metrics_for(variant, other)
        rows = (self.ratio(machine, variant, other, metric) for metric in metrics)
        return next((row for row in rows if row is not None), None)

    def ratio(self, machine: str, variant: Variant, other: Variant, metric: str) -> RatioRow | None:
        """The ratio by one metric in the shown case."""
        case = self.study.shown_case(variant).id
        return self.ratios.get((machine, variant.name, other.name, case, metric))

    def other_clock(self, row: RatioRow, time: MeasuredRow) -> str:
        """`by host time` if a ratio is by another metric than the time beside it; else empty."""
        return "" if row.metric == time.metric else f"by {self.study.metrics[row.metric].clock}"

    def limit_share(
        self, machine: str, variant: Variant, case: Case, metric: str
    ) -> LimitShare | None:
        """Rate of the variant as a share of its fastest ceiling's, paired within runs."""
        names = [ceiling.name for ceiling in self.study.ceilings_of(variant)]
        keys = ((machine, variant.name, name, case.id, metric) for name in names)
        rows = [self.ratios[key] for key in keys if key in self.ratios]
        shares = [LimitShare(row.ratio, row.against) for row in rows if all(self._payloads(row))]
        return min(shares, default=None)
