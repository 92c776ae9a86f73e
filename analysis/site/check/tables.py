"""Faults of the tables: what is missing although its samples are fresh, and what cannot be true."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Final

import numpy as np
import pandas as pd

from analysis.base.quantities import quantity
from analysis.base.statistics import MIN_RUNS, SAME_WITHIN
from analysis.results.model import METRIC
from analysis.results.model.fit import NAMES
from analysis.results.model.terms import BINDS, TRANSLATION
from analysis.results.store import MIN_UNWARMED_S
from analysis.site.check.faults import Fault
from analysis.site.facts.basis import figures_by_run
from analysis.site.facts.figures import WHOLE, Figures
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.rows import ClaimRow, MeasuredRow, rows_of
from analysis.study import Case, Study, Variant, calibrating
from analysis.study.access import access_of
from analysis.study.calibration import OF_WALKS, determined
from analysis.study.claims.verdicts import MISSING, NOT_TESTED

Cell = tuple[str, str, str, str]
"""Machine, study, variant and case."""
CELL = ["machine", "study", "variant", "case"]
HOST: Final = "host_time"


def table_faults(inputs: Inputs) -> Iterator[Fault]:
    tables = _Tables(inputs)
    yield from tables.absent_cases()
    yield from tables.unknown_parameters()
    yield from tables.absent_predictions()
    yield from tables.untested_claims()
    yield from tables.removed_claims()
    yield from tables.rates_beyond_the_link()
    yield from tables.device_times_above_host()
    yield from tables.beaten_ceilings()


class _Tables:
    """The tables of `inputs`, and their faults."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs, self.studies = inputs, inputs.studies
        self.cases = _cases(inputs.studies)
        summary = inputs.tables["summary"]
        keys = zip(*(summary[name] for name in CELL[1:]), strict=True)
        self.known = summary.loc[np.array([key in self.cases for key in keys], dtype=bool)]
        """Rows of the summary about cases that the studies have now."""
        self.fresh = self.known[(self.known["stale"] == 0) & (self.known["verified"] == 1)]

    def absent_cases(self) -> Iterator[Fault]:
        """Cases of the default grid that are neither measured nor skipped, in studies that the
        machine has measured; and studies that it should have measured."""
        known = {
            cell for name in ("summary", "skipped") for cell in _cells(self.inputs.tables[name])
        }
        measured = {cell[:2] for cell in known}
        for machine, study in product(self.inputs.machines, self.studies.values()):
            if (machine, study.name) not in measured:
                if _is_measured_by(study, self.inputs.machines[machine].get("gpus") or 1):
                    yield Fault(study.name, "expected results, got none", machine)
                continue
            for variant in study.variants:
                place = machine, study.name, variant.name
                names = [case.id for case in variant.in_grid("default")]
                if gaps := [name for name in names if (*place, name) not in known]:
                    what = f"expected a result or a reason in {_some(gaps)}, got none"
                    yield Fault(f"{study.name}/{variant.name}", what, machine)

    def unknown_parameters(self) -> Iterator[Fault]:
        """Parameters without a value on machines with fresh calibrations."""
        table = self.inputs.tables["model_parameters"].dropna(subset="value")
        known = {*zip(table["machine"], table["parameter"], strict=True)}
        for study in calibrating(self.studies):
            is_of_walks = determined(self.studies[study]) is OF_WALKS
            wanted = [name for name in NAMES if (BINDS.get(name) == TRANSLATION) == is_of_walks]
            for machine in self.fresh.loc[self.fresh["study"] == study, "machine"].unique():
                if unknown := [name for name in wanted if (machine, name) not in known]:
                    what = f"expected parameters of the model, got none for {', '.join(unknown)}"
                    yield Fault(study, what, str(machine))

    def absent_predictions(self) -> Iterator[Fault]:
        """Fresh times with a description of their reads, on calibrated machines, without a
        prediction."""
        calibrated = self.inputs.tables["model_parameters"]["machine"]
        is_timed = (self.fresh["metric"] == METRIC) & self.fresh["machine"].isin(calibrated)
        absent: dict[tuple[str, str], list[str]] = {}
        for cell in _cells(self.fresh[is_timed]) - _cells(self.inputs.tables["model"]):
            if access_of(*self.cases[cell[1:]]):
                machine, study, variant, case = cell
                absent.setdefault((machine, f"{study}/{variant}"), []).append(case)
        for (machine, where), names in absent.items():
            yield Fault(where, f"expected a prediction in {_some(names)}, got none", machine)

    def untested_claims(self) -> Iterator[Fault]:
        """Claims that are not tested for want of evidence, or that no machine's results mention."""
        rows = rows_of(self.inputs.tables["claims"], ClaimRow)
        for row in rows:
            if row.verdict == NOT_TESTED and MISSING in row.reason:
                yield Fault(f"{row.study}: claim {row.claim}", row.reason, row.machine)
        judged = {(row.study, row.claim) for row in rows}
        measured = {
            *self.inputs.tables["summary"]["study"],
            *self.inputs.tables["skipped"]["study"],
        }
        for study in (study for study in self.studies.values() if study.name in measured):
            for claim in study.claims:
                if (study.name, claim.id) not in judged:
                    yield Fault(f"{study.name}: claim {claim.id}", "expected a verdict, got none")

    def removed_claims(self) -> Iterator[Fault]:
        """Claims that fresh runs judge, as they have recorded the bounds, and that are gone: no
        claim has their comparisons."""
        gone: dict[tuple[str, str], str] = {}
        for machine, name, variant in {cell[:3] for cell in _cells(self.fresh)}:
            study = self.studies[name]
            known = {claim.id for claim in study.claims} | {*study.withdrawn}
            bounds = {digest for claim in study.claims for digest in claim.bounds}
            runs = self.inputs.fresh_runs((machine, name, variant))
            named = {
                claim
                for run in runs
                for claim, recorded in run.bounds.items()
                if not bounds.issuperset(recorded)
            }
            gone |= {(name, one): machine for one in named - known}
        for (name, claim), machine in gone.items():
            what = "expected it in study.yaml, since runs recorded its bounds, got none"
            yield Fault(f"{name}: claim {claim}", what, machine)

    def rates_beyond_the_link(self) -> Iterator[Fault]:
        """Payload rates above that of the link, in cases whose bytes all cross it once."""
        for link in (row for row in self.inputs.parameters if row.parameter == "link_rate"):
            most = max(link.value, link.ci_high) if link.ci_high > 0 else link.value
            is_whole = self.known["metric"].isin(WHOLE) & (self.known["machine"] == link.machine)
            for row in rows_of(self.known[is_whole], MeasuredRow):
                _, case = self.cases[row.study, row.variant, row.case]
                rate = case.payload_bytes / row.median
                if rate > most and self.studies[row.study].crosses_link_once(case):
                    what = (
                        f"expected at most {most / 1e9:.3g} GB/s, the rate of the link, in"
                        f" {row.case} by {row.metric}, got {rate / 1e9:.3g} GB/s"
                    )
                    yield Fault(f"{row.study}/{row.variant}", what, link.machine)

    def device_times_above_host(self) -> Iterator[Fault]:
        """Device times that in all of several runs exceed the host time of the same cell.

        Not of those that pages label: of a copy behind a kernel, which begins late, and with the
        host's calls. Nor of warm cases, of which only the host times are warm, nor of operations so
        long that nothing warms them up: their device time comes first after the check.
        """
        rows = rows_of(self.fresh[self.fresh["metric"].isin([METRIC, HOST])], MeasuredRow)
        times = {(row.machine, row.study, row.variant, row.case, row.metric): row for row in rows}
        for row in (row for row in rows if row.metric == METRIC):
            host = times.get((row.machine, row.study, row.variant, row.case, HOST))
            variant, case = self.cases[row.study, row.variant, row.case]
            is_labelled = variant.copies_alone or variant.host_work or variant.waits
            is_labelled = is_labelled or bool(case.device_above_host)
            if host is None or is_labelled or case.warm or host.median >= MIN_UNWARMED_S:
                continue
            runs = [*zip(figures_by_run(row), figures_by_run(host), strict=False)]
            is_above = row.median > host.median * (1 + SAME_WITHIN)
            if is_above and len(runs) >= MIN_RUNS and all(one > other for one, other in runs):
                what = (
                    f"expected at most the host time, {quantity(host.median, 's')}, as device time"
                    f" in {row.case}, got {quantity(row.median, 's')}"
                )
                yield Fault(f"{row.study}/{row.variant}", what, row.machine)

    def beaten_ceilings(self) -> Iterator[Fault]:
        """Fresh times that beat a ceiling of their variant, for which study.yaml gives no reason.
        Not by the device time of copies alone."""
        cells = {*self.fresh[[*CELL, "metric"]].itertuples(index=False, name=None)}
        for study in self.studies.values():
            ceilings = {
                (variant.name, ceiling.name): ceiling
                for variant in study.variants
                for ceiling in study.ceilings_of(variant)
                if ceiling.name not in variant.beats
            }
            for row in Figures(self.inputs, study).ratios.values():
                ceiling = ceilings.get((row.variant, row.against))
                if ceiling is None or row.verdict != "faster" or not row.ci_low > 1:
                    continue
                both = {
                    (row.machine, study.name, name, row.case, row.metric)
                    for name in (row.variant, row.against)
                }
                if both <= cells and not (row.metric == METRIC and ceiling.copies_alone):
                    what = (
                        f"expected at most the speed of {row.against} in {row.case} by"
                        f" {row.metric}, or its reason under `beats`, got {row.ratio:.3g} times it"
                    )
                    yield Fault(f"{study.name}/{row.variant}", what, row.machine)


def behind(inputs: Inputs) -> set[tuple[str, str]]:
    """The machines and studies that wait for a measurement: with results of other code in cases
    that the study has now; with a link of such a calibration; or new on such a machine."""
    tables, now = [inputs.tables[name] for name in ("summary", "skipped")], _cases(inputs.studies)
    measured = {cell[:2] for table in tables for cell in _cells(table)}
    of_other_code = [cell for table in tables for cell in _cells(table[table["stale"] == 1])]
    stale = {cell[:2] for cell in of_other_code if cell[1:] in now}
    waiting = {*stale}
    for machine in {machine for machine, _ in stale}:
        has_link = not any((machine, name) in stale for name in calibrating(inputs.studies))
        waiting |= {
            (machine, study.name)
            for study in inputs.studies.values()
            if (machine, study.name) not in measured or (study.has_link and not has_link)
        }
    return waiting


def _some(cases: Sequence[str]) -> str:
    """The first of some cases, and the number of the others."""
    return f"{min(cases)} and {len(cases) - 1} more" if cases[1:] else cases[0]


def _is_measured_by(study: Study, gpus: int) -> bool:
    """Whether a machine with this number of GPUs measures the study: one with several measures only
    studies of several."""
    needed = max(variant.gpus for variant in study.variants)
    return needed <= gpus if gpus == 1 else needed > 1


def _cells(table: pd.DataFrame) -> set[Cell]:
    return set(zip(*(table[name] for name in CELL), strict=True))


def _cases(studies: Mapping[str, Study]) -> dict[tuple[str, str, str], tuple[Variant, Case]]:
    return {
        (study.name, variant.name, case.id): (variant, case)
        for study in studies.values()
        for variant in study.variants
        for case in variant.cases
    }
