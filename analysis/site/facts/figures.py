"""One study's figures, comparisons and absences, looked up by machine, variant and case."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from analysis.base.statistics import verdict
from analysis.results.store.published import best_statement
from analysis.site.facts.basis import figures_by_run, ruled
from analysis.site.facts.inputs import Inputs, RunFile
from analysis.site.facts.predicting import Chip, chips
from analysis.site.facts.rows import (
    MeasuredRow,
    PublishedRow,
    RatioRow,
    SkippedRow,
    rows_of,
    runs_text,
)
from analysis.study import Case, Study, Variant

NOT_MEASURED = "not measured"


class Absence(NamedTuple):
    """Why a case has no figure: `skipped`, `failed` or `not measured`, and the reason given."""

    state: str
    reason: str


class LimitShare(NamedTuple):
    """A rate as a share of that of `ceiling`, the fastest of the variant's in the same case, by
    `metric`."""

    share: float
    ceiling: str
    metric: str


@dataclass(frozen=True)
class Figures:
    """Measured figures of a study, and missing ones. Methods return None without a figure."""

    inputs: Inputs
    study: Study

    def find(self, machine: str, variant: str, case: str, metric: str) -> MeasuredRow | None:
        return self.measured.get((machine, variant, case, metric))

    def by_fresh_run(self, machine: str, variant: str, case: str, metric: str) -> list[float]:
        """The figure of each run, oldest first; empty if it is stale or was not measured."""
        row = self.find(machine, variant, case, metric)
        return figures_by_run(row) if row is not None and not row.stale else []

    @cached_property
    def machines(self) -> list[str]:
        """Machines with results of this study, skipped and failed cases included."""
        tables = (self.inputs.tables["summary"], self.inputs.tables["skipped"])
        found = [self.inputs.of_study(table, self.study)["machine"] for table in tables]
        return sorted({str(machine) for machines in found for machine in machines})

    @cached_property
    def chips(self) -> Mapping[str, Chip]:
        """The calibrated machines, by name."""
        return chips(self.inputs)

    @cached_property
    def measured(self) -> Mapping[tuple[str, str, str, str], MeasuredRow]:
        """Medians by machine, variant, case and metric."""
        rows = rows_of(self.inputs.of_study(self.inputs.tables["summary"], self.study), MeasuredRow)
        return {(row.machine, row.variant, row.case, row.metric): row for row in map(ruled, rows)}

    @cached_property
    def measured_cases(self) -> Collection[tuple[str, str, str]]:
        """Machine, variant and case of every figure."""
        return {key[:3] for key in self.measured}

    @cached_property
    def ratios(self) -> Mapping[tuple[str, str, str, str, str], RatioRow]:
        """Ratios by machine, variant, against, case and metric; ratios of payload rates if the two
        deliver different bytes."""
        table = self.inputs.of_study(self.inputs.tables["ratios"], self.study)
        rows = (ruled(self._by_rate(row)) for row in rows_of(table, RatioRow))
        return {(row.machine, row.variant, row.against, row.case, row.metric): row for row in rows}

    def _by_rate(self, row: RatioRow) -> RatioRow:
        if not self.is_of_rates(row):
            return row
        payload, other = self._payloads(row)
        by_run = [one * payload / other for one in figures_by_run(row)]
        value, low, high = (one * payload / other for one in (row.ratio, row.ci_low, row.ci_high))
        decided = verdict(value, low, high, by_run)
        row = replace(row, ratio=value, ci_low=low, ci_high=high)
        return replace(row, verdict=decided, by_run=runs_text(by_run))

    @cached_property
    def skipped(self) -> Mapping[tuple[str, str, str], SkippedRow]:
        """Skipped and failed cases by machine, variant and case."""
        rows = rows_of(self.inputs.of_study(self.inputs.tables["skipped"], self.study), SkippedRow)
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

    def fresh(self, *metrics: str) -> list[MeasuredRow]:
        """Fresh figures by any of these metrics."""
        rows = self.measured.values()
        return [row for row in rows if row.metric in metrics and not row.stale]

    @cached_property
    def are_rates(self) -> bool:
        """Whether every operation of every step delivers bytes, so that rates are shown."""
        shown = self.study.with_role("step", "beyond") or self.study.variants
        return all(case.payload_bytes > 0 for variant in shown for case in variant.cases)

    def time(self, machine: str, variant: Variant) -> MeasuredRow | None:
        """The time in the shown case, by the preferred metric that was measured."""
        rows = self.times(machine, variant)
        return rows[0] if rows else None

    def times(self, machine: str, *variants: Variant) -> list[MeasuredRow]:
        """Times of all `variants` in the first one's shown case, by the preferred common metric
        that was measured for each; empty without one."""
        case = self.study.shown_case(variants[0]).id
        for metric in self.study.metrics_for(*variants):
            keys = [(machine, variant.name, case, metric) for variant in variants]
            if all(key in self.measured for key in keys):
                return [self.measured[key] for key in keys]
        return []

    def metric(self, machine: str, variant: Variant, metric: str) -> MeasuredRow | None:
        """One metric in the shown case."""
        return self.find(machine, variant.name, self.study.shown_case(variant).id, metric)

    def by_run(self, row: MeasuredRow) -> list[tuple[RunFile, float]]:
        """The runs of a figure, oldest first, each with its median. Empty if the runs are not
        known, because it is stale or only some runs have this case."""
        if row.stale:
            return []
        runs = self.inputs.fresh_runs((row.machine, row.study, row.variant))
        medians = figures_by_run(row)
        return list(zip(runs, medians, strict=True)) if len(runs) == len(medians) else []

    def shared_metric(self, machine: str, variants: Iterable[Variant]) -> str:
        """The metric that compares most of the measured `variants` in their shown cases; among
        several, the preferred one. Empty if none was measured."""
        measured = [one for one in variants if self.time(machine, one) is not None]

        def number_with(metric: str) -> int:
            return sum(self.metric(machine, one, metric) is not None for one in measured)

        return max(self.study.metrics_for(*measured), key=number_with) if measured else ""

    def comparison(self, machine: str, variant: Variant, other: Variant) -> RatioRow | None:
        """The ratio in the shown case, by the preferred metric that compares the two."""
        metrics = self.study.metrics_for(variant, other)
        found = (self.ratio(machine, variant, other, metric) for metric in metrics)
        return next((row for row in found if row is not None), None)

    def ratio(self, machine: str, variant: Variant, other: Variant, metric: str) -> RatioRow | None:
        """The ratio by one metric in the shown case."""
        case = self.study.shown_case(variant).id
        return self.ratios.get((machine, variant.name, other.name, case, metric))

    def other_clock(self, row: RatioRow, time: MeasuredRow) -> str:
        """`by host time` if a ratio is by another metric than the time beside it; else empty."""
        return "" if row.metric == time.metric else f"by {self.study.metrics[row.metric].clock}"

    def is_of_rates(self, row: RatioRow) -> bool:
        """Whether a ratio compares payload rates, because the two deliver different bytes."""
        payload, other_payload = self._payloads(row)
        return payload != other_payload and bool(payload and other_payload)

    def _payloads(self, row: RatioRow) -> tuple[int, int]:
        """Bytes that both variants of a ratio deliver in its case; 0 for one without that case."""
        payload, other_payload = (
            self.study.payloads.get((name, row.case), 0) for name in (row.variant, row.against)
        )
        return payload, other_payload

    def limit_share(
        self, machine: str, variant: Variant, case: Case, metric: str
    ) -> LimitShare | None:
        """Rate of the variant as a share of its fastest ceiling's, paired within runs."""
        names = [ceiling.name for ceiling in self.study.ceilings_of(variant)]
        keys = ((machine, variant.name, name, case.id, metric) for name in names)
        rows = [self.ratios[key] for key in keys if key in self.ratios]
        shares = [(row.ratio, row.against, metric) for row in rows if all(self._payloads(row))]
        return LimitShare(*min(shares)) if shares else None

    def reached(self, machine: str, variant: Variant) -> LimitShare | None:
        """Rate of the variant as a share of its fastest ceiling's in its shown case; None if
        stale."""
        row = self.time(machine, variant)
        if row is None or row.stale:
            return None
        return self.limit_share(machine, variant, self.study.shown_case(variant), row.metric)

    def absence(self, machine: str, variant: Variant, case: Case) -> Absence:
        """Reason for a missing figure of this case."""
        row = self.skipped.get((machine, variant.name, case.id))
        if row is not None:
            return Absence(row.status, row.reason)
        is_rare = case.grid == "full"
        return Absence(NOT_MEASURED, "only the grid full has this case" if is_rare else "")
