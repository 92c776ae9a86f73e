"""A study with its results on all machines: what its page and its charts ask for."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import pandas as pd

from analysis.base.quantities import quantity, quantity_interval
from analysis.base.statistics import verdict
from analysis.results.collect import taken_of
from analysis.results.model.fit import judged, uses
from analysis.results.store.published import PublishedRow, best_statement
from analysis.results.tables.rows import RatioRow, rows_of, runs_text
from analysis.site.facts.addresses import samples_addresses
from analysis.site.facts.basis import figures_by_run, without_unsupported_intervals
from analysis.site.facts.captures import CAPTURED, MISSING, STALE, UNTRIED, UNWANTED, Capture
from analysis.site.facts.claims import Verdicts
from analysis.site.facts.inputs import Inputs, MeasuredRow
from analysis.site.facts.links import Chip, chips
from analysis.site.facts.points import points_table
from analysis.study import Case, Study, Variant, parse_case
from analysis.study.source import source_files

Kernels = Mapping[str, list[dict[Any, Any]]]
"""Rows of a table of the compiler's tools, by variant."""
WHOLE: Final = ("gpu_time", "host_time")
"""Clocks that every study means alike: until the operation is complete."""


def delivered_bytes(case: Case, metric: str) -> int:
    """The payload that a time delivers: none if it is a part of the operation, as a CPU time is."""
    return case.payload_bytes if metric in WHOLE else 0


class LimitShare(NamedTuple):
    """A rate as a share of that of `ceiling`, the fastest of the variant's in the same case."""

    share: float
    ceiling: str


@dataclass(frozen=True, eq=False)
class StudyFacts:
    """A study with its results: the argument of a study's charts.py. Tables are about variants that
    the study has now. Methods return None without a figure."""

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
        return sorted({*self.table("summary")["machine"], *self.skipped["machine"]})

    @property
    def summary(self) -> pd.DataFrame:
        """Rows of the summary by MeasuredRow; an interval is missing if the runs do not allow
        one."""
        return without_unsupported_intervals(self.table("summary"))

    @property
    def skipped(self) -> pd.DataFrame:
        """Cases that were skipped or failed, by SkippedRow."""
        return self.table("skipped")

    @cached_property
    def points(self) -> pd.DataFrame:
        """Points of the charts, by `analysis.site.facts.points.points_table`."""
        return points_table(self)

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """Times by the link model beside measured ones, by ModelRow.

        `use` is one of `fit.USES`, `judged` says whether the link surely binds the point.
        """
        table = self.table("model").reset_index(drop=True)
        return table.assign(use=uses(table, self.inputs.studies), judged=judged(table))

    @cached_property
    def verdicts(self) -> Verdicts:
        return Verdicts(self.inputs, self.study)

    @cached_property
    def chips(self) -> Mapping[str, Chip]:
        """The calibrated machines, by name."""
        return chips(self.inputs)

    @cached_property
    def limit_rates(self) -> Mapping[str, float]:
        """B/s at which the limit of another study moves 1 GiB by the model, by machine."""
        study, mover = self.study.limit or ("", "")
        if study not in self.inputs.studies:
            return {}
        variant = self.inputs.studies[study].variant(mover)
        bulk = replace(variant.cases[0], payload_bytes=2**30)
        rates = ((name, 2**30 / one.seconds(variant, bulk)) for name, one in self.chips.items())
        return {name: rate for name, rate in rates if math.isfinite(rate)}

    @cached_property
    def unreached(self) -> Mapping[str, str]:
        """Reasons for skipping, by variant, for variants that were skipped on every machine that
        tried them."""
        without = self.skipped[~self.skipped["variant"].isin(self.summary["variant"])]
        return {
            str(variant): "; ".join(dict.fromkeys(tried["reason"]))
            for variant, tried in without.groupby("variant")
            if set(tried["status"]) == {"skipped"}
        }

    @cached_property
    def measured(self) -> Mapping[tuple[str, str, str, str], MeasuredRow]:
        """Medians by machine, variant, case and metric."""
        rows = rows_of(self.summary, MeasuredRow)
        return {(row.machine, row.variant, row.case, row.metric): row for row in rows}

    @cached_property
    def ratios(self) -> Mapping[tuple[str, str, str, str, str], RatioRow]:
        """Ratios by machine, variant, against, case and metric; ratios of payload rates if the two
        deliver different bytes."""
        table = self.table("ratios")
        by_rate = pd.DataFrame(
            [vars(self._by_rate(row)) for row in rows_of(table, RatioRow)], columns=table.columns
        )
        return {
            (row.machine, row.variant, row.against, row.case, row.metric): row
            for row in rows_of(without_unsupported_intervals(by_rate), RatioRow)
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

    @property
    def published(self) -> list[PublishedRow]:
        """Published figures of the study."""
        return rows_of(self.inputs.published[self.study.name], PublishedRow)

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

    def find(self, machine: str, variant: str, case: str, metric: str) -> MeasuredRow | None:
        return self.measured.get((machine, variant, case, metric))

    def metric(self, machine: str, variant: Variant, metric: str) -> MeasuredRow | None:
        """One metric in the shown case."""
        return self.find(machine, variant.name, self.study.shown_case(variant).id, metric)

    def time(self, machine: str, variant: Variant) -> MeasuredRow | None:
        """The time in the shown case, by the preferred metric that was measured."""
        rows = (self.metric(machine, variant, name) for name in self.study.metrics_for(variant))
        return next(filter(None, rows), None)

    def ratio(self, machine: str, variant: Variant, other: Variant, metric: str) -> RatioRow | None:
        """The ratio by one metric in the shown case."""
        case = self.study.shown_case(variant).id
        return self.ratios.get((machine, variant.name, other.name, case, metric))

    def comparison(self, machine: str, variant: Variant, other: Variant) -> RatioRow | None:
        """The ratio in the shown case, by the preferred metric that compares the two."""
        metrics = self.study.metrics_for(variant, other)
        rows = (self.ratio(machine, variant, other, metric) for metric in metrics)
        return next(filter(None, rows), None)

    def limit_share(
        self, machine: str, variant: Variant, case: Case, metric: str
    ) -> LimitShare | None:
        """Rate of the variant as a share of its fastest ceiling's, paired within runs."""
        names = [ceiling.name for ceiling in self.study.ceilings_of(variant)]
        keys = ((machine, variant.name, name, case.id, metric) for name in names)
        rows = [self.ratios[key] for key in keys if key in self.ratios]
        shares = [LimitShare(row.ratio, row.against) for row in rows if all(self._payloads(row))]
        return min(shares, default=None)

    def capture(self, machine: str, variant: Variant, kind: str) -> Capture:
        """The capture of this kind, `counters` or `timeline`; stale if the source has changed."""
        code = self.inputs.codes[self.study.name][variant.name]
        key = machine, self.study.name, variant.name
        taken = taken_of(self.inputs.captures, key, kind, code)
        if taken is None:
            return Capture(MISSING, UNTRIED if kind in variant.captures else UNWANTED)
        if not taken.is_captured:
            return Capture(MISSING, taken.variant.status.partition(": ")[2])
        state = CAPTURED if taken.is_fresh else STALE
        return Capture(state, "", taken.variant.case, taken.capture.path, variant.name)

    def further_files(self, variant: Variant) -> list[Path]:
        """The files of the repository that the variant's own includes or imports, at any depth."""
        return [file for file in source_files(self.study, variant) if file != variant.path]

    @cached_property
    def resources(self) -> Kernels:
        """Registers and memory of kernels, by RESOURCES."""
        return self._kernels(self.inputs.resources)

    @cached_property
    def machine_code(self) -> Kernels:
        """Loads and stores of kernels, by MACHINE_CODE."""
        return self._kernels(self.inputs.machine_code)

    def _kernels(self, table: pd.DataFrame) -> Kernels:
        rows = table[table["study"] == self.study.name]
        rows = rows.drop_duplicates(["variant", "arch", "kernel"])
        return {str(name): of.to_dict("records") for name, of in rows.groupby("variant")}


def figures(facts: StudyFacts, *metrics: str) -> pd.DataFrame:
    """A row for each median of these metrics: the columns of MeasuredRow, a column for each key of
    the study's cases, the variant's `title`, `state` (measured or stale) and `href`, and the median
    and its interval in words, `short` and `interval`."""
    rows = facts.summary[facts.summary["metric"].isin(metrics)]
    keys = pd.DataFrame([parse_case(case) for case in rows["case"]], index=rows.index)
    titles = {variant.name: variant.title for variant in facts.study.variants}
    units = [facts.study.metrics[metric].unit for metric in rows["metric"]]
    ends = rows["median"], rows["ci_low"], rows["ci_high"]
    return rows.assign(
        title=rows["variant"].map(titles),
        state=rows["stale"].map({0: "measured", 1: "stale"}),
        href=samples_addresses(rows),
        short=[*map(quantity, rows["median"], units)],
        interval=[*map(quantity_interval, *ends, units)],
    ).join(keys.reindex(columns=facts.study.case_keys))


def fresh_figures(facts: StudyFacts, *metrics: str) -> pd.DataFrame:
    """The rows of `figures` that are not stale."""
    rows = figures(facts, *metrics)
    return rows[rows["stale"] == 0]
