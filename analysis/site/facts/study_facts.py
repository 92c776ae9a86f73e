"""All facts about a study, for its page and its charts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from analysis.results.model.judge import judged, uses
from analysis.site.facts.basis import ruled
from analysis.site.facts.captures import Captures
from analysis.site.facts.claims import Verdicts
from analysis.site.facts.figures import Figures
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.points import points_table
from analysis.site.facts.rows import CounterRow, KernelResources, PublishedRow, rows_of
from analysis.study import Study
from analysis.toolchain.sass import VariantCode


@dataclass(frozen=True, eq=False)
class StudyFacts:
    """A study with its results: the argument of a study's charts.py. Tables are about variants that
    the study has now."""

    inputs: Inputs
    study: Study

    @cached_property
    def figures(self) -> Figures:
        """Medians, ratios and absences by machine, variant and case."""
        return Figures(self.inputs, self.study)

    @cached_property
    def captures(self) -> Captures:
        """Counters and timelines."""
        return Captures(self.inputs, self.study)

    @cached_property
    def verdicts(self) -> Verdicts:
        return Verdicts(self.inputs, self.study)

    @cached_property
    def points(self) -> pd.DataFrame:
        """Points of the charts, by `analysis.site.facts.points.points_table`."""
        return points_table(self.figures)

    @property
    def machines(self) -> list[str]:
        """Machines with results of this study, skipped and failed cases included."""
        return self.figures.machines

    @property
    def summary(self) -> pd.DataFrame:
        """Rows of the summary by MeasuredRow; an interval is missing if the runs do not allow
        one."""
        return ruled(self.figures.table("summary"))

    @property
    def rounds(self) -> pd.DataFrame:
        """Times of shown cases by round, with the speed of the host, by RoundRow."""
        return self.figures.table("rounds")

    @property
    def skipped(self) -> pd.DataFrame:
        """Cases that were skipped or failed, by SkippedRow."""
        return self.figures.table("skipped")

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

    @property
    def published(self) -> list[PublishedRow]:
        """Published figures of the study."""
        return rows_of(self.inputs.published[self.study.name], PublishedRow)

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """Times by the link model beside measured ones, by ModelRow.

        `use` is one of `judge.USES`, `judged` says whether the link surely binds the point.
        """
        table = self.figures.table("model").reset_index(drop=True)
        return table.assign(use=uses(table, self.inputs.studies), judged=judged(table))

    @property
    def predicted_counters(self) -> list[CounterRow]:
        return rows_of(self.figures.table("model_counters"), CounterRow)

    @property
    def repeats(self) -> pd.DataFrame:
        """Ratios between repeated entries of one program, by RepeatRow."""
        return self.figures.table("repeats").reset_index(drop=True)

    def derived(self, table: str) -> pd.DataFrame | None:
        """A table of the study's tables.py; None where it is absent."""
        return self.inputs.derived[self.study.name].get(table)

    @property
    def absent(self) -> Mapping[str, str]:
        """Reasons for missing tables of the study's tables.py, by table."""
        return self.inputs.absent[self.study.name]

    def resources(self, variant: str) -> list[KernelResources]:
        """Compiler reports of the variant's kernels, one per kernel."""
        table = self.inputs.resources
        of_variant = (table["study"] == self.study.name) & (table["variant"] == variant)
        kernels = table[of_variant].drop_duplicates(["arch", "kernel"])
        return rows_of(kernels, KernelResources)

    def machine_code(self, variant: str) -> VariantCode | None:
        """Machine code of the variant's kernels; None if it was not built."""
        return self.inputs.machine_code.get((self.study.name, variant))
