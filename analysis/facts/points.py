"""One study's figures as rows a chart or table can show: every variant, measured or not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import pandas as pd

from analysis.facts.inputs import Inputs
from analysis.quantities import digits, quantity, quantity_interval
from analysis.store.published import best_statement
from analysis.study import Case, Study, Variant, parse_case
from analysis.tables.rows import ClaimPartRow, rows_of

Row = dict[str, Any]
"""A row of a table by its columns."""

ROLES = ("ceiling", "step", "beyond", "reference")
"""In the order charts list them."""

CASE_PREFIX = "case_"
"""Sets a case's keys apart from the columns of the table."""

NOT_MEASURED = "not measured"

COLUMNS = [
    *("machine", "variant", "title", "role", "state", "case", "payload_bytes"),
    *("metric", "clock", "is_default", "seconds", "seconds_low", "seconds_high"),
    *("rate", "rate_low", "rate_high", "label", "short", "interval", "n", "rounds"),
    *("verified", "throttled", "run", "note", "href"),
]


@dataclass(frozen=True)
class Context:
    """A study with all that is known of it. What a study's own charts.py is given."""

    inputs: Inputs
    study: Study

    @cached_property
    def machines(self) -> list[str]:
        """Machines that have anything of this study."""
        tables = (self.inputs.summary, self.inputs.skipped)
        found = [self.inputs.of_study(table, self.study)["machine"] for table in tables]
        return sorted({str(machine) for machines in found for machine in machines})

    @property
    def time_metrics(self) -> list[str]:
        return self.study.time_metrics

    @property
    def has_rates(self) -> bool:
        """Whether every operation of every step delivers bytes, so that rates tell the story."""
        shown = self.study.with_role("step", "beyond") or self.study.variants
        return all(case.payload_bytes > 0 for variant in shown for case in variant.cases)

    def metrics_for(self, *variants: Variant) -> list[str]:
        """Time metrics that may compare `variants`, the preferred first."""
        return self.study.metrics_for(*variants)

    def shown_case(self, variant: Variant) -> Case:
        """The headline case, or where the variant does not have it the largest it is usually
        measured in."""
        cases = {case.id: case for case in variant.cases}
        usual = variant.in_grid("default") or variant.cases
        largest = max(usual, key=lambda case: case.payload_bytes)
        return cases.get(self.study.headline, largest)

    def _rows(self, table: pd.DataFrame, *key: str) -> dict[tuple[str, ...], Row]:
        """This study's rows of `table` by the columns `key`."""
        records = self.inputs.of_study(table, self.study).to_dict("records")
        return {tuple(row[name] for name in key): cast(Row, row) for row in records}

    @cached_property
    def summary(self) -> dict[tuple[str, ...], Row]:
        """This study's rows of the summary by machine, variant, case and metric."""
        return self._rows(self.inputs.summary, "machine", "variant", "case", "metric")

    @cached_property
    def ratios(self) -> dict[tuple[str, ...], Row]:
        """This study's ratios by machine, variant, against, case and metric."""
        key = ("machine", "variant", "against", "case", "metric")
        return self._rows(self.inputs.ratios, *key)

    @cached_property
    def missing(self) -> dict[tuple[str, ...], Row]:
        """Skipped and failed cases by machine, variant and case."""
        return self._rows(self.inputs.skipped, "machine", "variant", "case")

    @cached_property
    def claims(self) -> dict[str, list[Row]]:
        """This study's rows of claims.csv by claim, a row a machine."""
        own = self.inputs.claims[self.inputs.claims["study"] == self.study.name]
        groups = own.groupby("claim", sort=False)
        return {str(name): cast(list[Row], rows.to_dict("records")) for name, rows in groups}

    @cached_property
    def claim_parts(self) -> dict[tuple[str, str], list[ClaimPartRow]]:
        """The rows of claim_parts.csv by claim and machine, those first that decide."""
        table = self.inputs.claim_parts
        found: dict[tuple[str, str], list[ClaimPartRow]] = {}
        for row in rows_of(table[table["study"] == self.study.name], ClaimPartRow):
            found.setdefault((row.claim, row.machine), []).append(row)
        return found

    def figure(self, machine: str, variant: Variant) -> Row | None:
        """The summary row of the shown case by the preferred metric that was measured."""
        case = self.shown_case(variant)
        for metric in self.metrics_for(variant):
            row = self.summary.get((machine, variant.name, case.id, metric))
            if row is not None:
                return row
        return None

    @property
    def is_about_repeats(self) -> bool:
        """Whether every step that follows another is only that one listed again."""
        after = [v for v in self.study.with_role("step") if v.after]
        return bool(after) and all(self.study.is_repeat(variant) for variant in after)

    def contenders(self, machine: str) -> list[Variant]:
        """Measured steps that solve the study's own problem, the shortest time in its shown case
        first.

        Those that deliver other bytes than the first, or whose constants are not the study's, solve
        another one. Repeats of a step do not count.
        """
        steps = self.study.with_role("step", "beyond")
        payload = self.shown_case(steps[0]).payload_bytes if steps else 0
        measured = [
            (float(row["median"]), step)
            for step in steps
            if self.shown_case(step).payload_bytes == payload
            and dict(step.constants) == dict(self.study.constants)
            and not self.study.is_repeat(step)
            and (row := self.figure(machine, step)) is not None
        ]
        return [step for _, step in sorted(measured, key=lambda pair: pair[0])]

    def fastest(self, machine: str) -> Variant | None:
        """The first of the contenders, be it surely or not; None where nothing was measured."""
        return next(iter(self.contenders(machine)), None)

    def ties(self, machine: str) -> list[Variant]:
        """The contenders with fresh figures that the fastest is not surely faster than."""
        best, *others = self.contenders(machine)
        fresh = [one for one in others if not (self.figure(machine, one) or {}).get("stale")]
        return [one for one in fresh if not self.is_surely_faster(machine, best, one)]

    def is_surely_faster(self, machine: str, variant: Variant, other: Variant) -> bool:
        """By the ratio of the two where they are compared, else where their intervals are apart."""
        if (row := self.comparison(machine, variant, other)) is not None:
            return bool(row["verdict"] == "faster")
        if (row := self.comparison(machine, other, variant)) is not None:
            return bool(row["verdict"] == "slower")
        figures = self.figures(machine, variant, other)
        return bool(figures) and float(figures[0]["ci_high"]) < float(figures[1]["ci_low"])

    def figures(self, machine: str, *variants: Variant) -> list[Row]:
        """The summary rows of the first one's shown case, by the preferred metric that may compare
        `variants` and was measured of each; empty where there is none."""
        case = self.shown_case(variants[0]).id
        for metric in self.metrics_for(*variants):
            keys = [(machine, variant.name, case, metric) for variant in variants]
            if all(key in self.summary for key in keys):
                return [self.summary[key] for key in keys]
        return []

    def comparison(self, machine: str, variant: Variant, other: Variant) -> Row | None:
        """The ratio row of the shown case by the preferred metric that compares the two."""
        case = self.shown_case(variant)
        for metric in self.metrics_for(variant, other):
            row = self.ratios.get((machine, variant.name, other.name, case.id, metric))
            if row is not None:
                return row
        return None

    @cached_property
    def points(self) -> pd.DataFrame:
        """Rows in COLUMNS and one `case_<key>` a case key.

        A row is one machine, variant, case and time metric; `state` says whether it is `measured`,
        `stale`, `skipped`, `failed`, `not measured` or `published`. `seconds*` are s, `rate*` GB/s.
        """
        rows = [
            row
            for machine in self.machines
            for variant in self.study.variants
            for case in variant.cases
            for row in self._cell(machine, variant, case)
        ]
        rows += self._published_rows()
        keys = [f"{CASE_PREFIX}{key}" for key in self.study.case_keys]
        return pd.DataFrame(rows, columns=[*COLUMNS, *keys])

    def _cell(self, machine: str, variant: Variant, case: Case) -> list[dict[str, object]]:
        rows = []
        default = None
        taken = ["n", "rounds", "verified", "throttled", "run"]
        for metric in self.time_metrics:
            row = self.summary.get((machine, variant.name, case.id, metric))
            if row is None:
                continue
            if default is None and metric in self.metrics_for(variant):
                default = metric
            state = "stale" if row["stale"] else "measured"
            rows.append(
                self._common(machine, variant, case, metric, state)
                | self._values(case.payload_bytes, row["median"], row["ci_low"], row["ci_high"])
                | {column: row[column] for column in taken}
                | {"is_default": int(metric == default)}
            )
        if rows:
            return rows
        state, note = self.absence(machine, variant, case)
        if state == NOT_MEASURED and case.grid == "full":
            return []  # few machines measure those, and what nobody asked for is not missing
        empty = self._common(machine, variant, case, self.metrics_for(variant)[0], state)
        return [empty | {"label": state, "short": state, "note": note, "is_default": 1}]

    def absence(self, machine: str, variant: Variant, case: Case) -> tuple[str, str]:
        """Why there is no figure: `skipped`, `failed` or `not measured`, and the reason given."""
        row = self.missing.get((machine, variant.name, case.id))
        if row is not None:
            return str(row["status"]), str(row["reason"])
        return NOT_MEASURED, "only the grid full has this case" if case.grid == "full" else ""

    def _common(
        self, machine: str, variant: Variant, case: Case, metric: str, state: str
    ) -> dict[str, object]:
        return {
            "machine": machine,
            "variant": variant.name,
            "title": variant.title,
            "role": variant.role,
            "state": state,
            "case": case.id,
            "payload_bytes": case.payload_bytes,
            "metric": metric,
            "clock": self.study.metrics[metric].label,
            "href": f"data/#{anchor(machine, self.study.name, variant.name)}",
            "note": "",
            **{f"{CASE_PREFIX}{key}": value for key, value in case.values.items()},
        }

    def _values(
        self, payload_bytes: int, seconds: float, low: float, high: float
    ) -> dict[str, object]:
        """Times in s and rates in GB/s, and how they are written beside the mark."""
        values: dict[str, object] = {
            "seconds": seconds,
            "seconds_low": low,
            "seconds_high": high,
        }
        if payload_bytes:
            # The longest time is the lowest rate.
            rates = [payload_bytes / time / 1e9 for time in (seconds, high, low)]
            values |= dict(zip(("rate", "rate_low", "rate_high"), rates, strict=True))
        if self.has_rates and payload_bytes:
            short, interval = digits(rates[0]), _span(rates[1], rates[2])
        else:
            short, interval = quantity(seconds, "s"), quantity_interval(low, high, "s")
        label = f"{short} ({interval})" if interval else short
        return values | {"label": label, "short": short, "interval": interval}

    def _published_rows(self) -> list[dict[str, object]]:
        rows = []
        for _, row in best_statement(self.inputs.published[self.study.name]).iterrows():
            if row["variant"] not in self.study.variant_names or math.isnan(row["seconds"]):
                continue
            values = self._values(row["payload_bytes"], row["seconds"], math.nan, math.nan)
            variant = self.study.variant(row["variant"])
            metric = row["metric"] if row["metric"] in self.study.metrics else self.time_metrics[0]
            case = Case(parse_case(row["case"]), row["payload_bytes"], "default")
            note = f"{row['printed']} {row['unit_printed']} in {row['source']}"
            rows += [
                self._common(machine, variant, case, metric, "published")
                | values
                | {"note": note, "is_default": 1}
                for machine in self.machines
            ]
        return rows


def anchor(machine: str, study: str, variant: str) -> str:
    """The id of a variant's samples on the data page."""
    return f"{machine}-{study}-{variant}"


def _span(low: float, high: float) -> str:
    return "" if math.isnan(low) or math.isnan(high) else f"{digits(low)} to {digits(high)}"
