"""Faults of the tables: what is missing although its samples are fresh, and what cannot be true."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from operator import attrgetter
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from analysis.base.quantities import quantity
from analysis.base.statistics import MIN_RUNS, SAME_WITHIN
from analysis.results.model.terms import BINDS, METRIC, NAMES, TRANSLATION
from analysis.results.store import MIN_UNWARMED_S
from analysis.results.tables.rows import ClaimRow, rows_of
from analysis.site.facts.basis import figures_by_run
from analysis.site.facts.inputs import Inputs, MeasuredRow
from analysis.site.facts.study_facts import WHOLE, StudyFacts
from analysis.study import Case, Study, Variant, calibrating
from analysis.study.access import access_of
from analysis.study.claims.verdicts import MISSING, NOT_TESTED

Cell = tuple[str, str, str, str]
"""Machine, study, variant and case."""
CELL = ["machine", "study", "variant", "case"]
_cell = attrgetter(*CELL)
HOST: Final = "host_time"


class Fault(NamedTuple):
    """A gap or a contradiction: `what` is wrong with a `part`, which is a variant, a claim or a
    page. Empty are the `machine` and the `study` if it concerns none alone, and the `part` if it is
    all of a study."""

    part: str
    what: str
    machine: str = ""
    study: str = ""

    def __str__(self) -> str:
        place = "/".join(filter(None, [self.study, self.part]))
        return ": ".join(filter(None, [self.machine, place, self.what]))


def table_faults(inputs: Inputs) -> Iterator[Fault]:
    """Faults of all tables."""
    known = _Known(inputs)
    yield from _absent_cases(known)
    yield from _unknown_parameters(known)
    yield from _absent_predictions(known)
    yield from _untested_claims(known)
    yield from _removed_claims(known)
    yield from _rates_beyond_the_link(known)
    yield from _device_times_above_host(known)
    yield from _beaten_ceilings(known)


@dataclass(frozen=True)
class _Known:
    """Rows of the tables about cases that the studies still have."""

    inputs: Inputs

    @cached_property
    def cases(self) -> Mapping[tuple[str, str, str], tuple[Variant, Case]]:
        return _cases(self.inputs.studies)

    @cached_property
    def summary(self) -> pd.DataFrame:
        table = self.inputs.tables["summary"]
        return table.loc[np.array([cell[1:] in self.cases for cell in _cells(table)], dtype=bool)]

    @cached_property
    def fresh(self) -> pd.DataFrame:
        return self.summary[(self.summary["stale"] == 0) & (self.summary["verified"] == 1)]


def _absent_cases(known: _Known) -> Iterator[Fault]:
    """Cases of the default grid that are neither measured nor skipped, in studies that the machine
    has measured; and studies that it should have measured."""
    inputs = known.inputs
    cells = {cell for name in ("summary", "skipped") for cell in _cells(inputs.tables[name])}
    measured = {cell[:2] for cell in cells}
    for machine, study in product(inputs.machines, inputs.studies.values()):
        if (machine, study.name) not in measured:
            # A machine with several GPUs measures only studies of several.
            gpus = inputs.machines[machine].get("gpus") or 1
            needed = max(variant.gpus for variant in study.variants)
            if needed <= gpus if gpus == 1 else needed > 1:
                yield Fault("", "expected results, got none", machine, study.name)
            continue
        for variant in study.variants:
            place = machine, study.name, variant.name
            names = [case.id for case in variant.in_grid("default")]
            gaps = [name for name in names if (*place, name) not in cells]
            yield from _absent(place, gaps, "a result or a reason")


def _absent(place: tuple[str, str, str], cases: list[str], expected: str) -> Iterator[Fault]:
    """A fault that names the first of some cases, and the number of the others."""
    if cases:
        machine, study, variant = place
        some = f"{min(cases)} and {len(cases) - 1} more" if cases[1:] else cases[0]
        yield Fault(variant, f"expected {expected} in {some}, got none", machine, study)


def _unknown_parameters(known: _Known) -> Iterator[Fault]:
    """Parameters without a value on machines with fresh calibrations."""
    table = known.inputs.tables["model_parameters"].dropna(subset="value")
    fitted = {*zip(table["machine"], table["parameter"], strict=True)}
    for study in calibrating(known.inputs.studies):
        # A study determines address translation if its links say how large their pool is.
        links = (variant.link or {} for variant in known.inputs.studies[study].variants)
        is_of_walks = any("pool_bytes" in link for link in links)
        wanted = [name for name in NAMES if (BINDS.get(name) == TRANSLATION) == is_of_walks]
        for machine in known.fresh.loc[known.fresh["study"] == study, "machine"].unique():
            if unknown := [name for name in wanted if (machine, name) not in fitted]:
                what = f"expected parameters of the model, got none for {', '.join(unknown)}"
                yield Fault("", what, str(machine), study)


def _absent_predictions(known: _Known) -> Iterator[Fault]:
    """Fresh times with a description of their reads, on calibrated machines, without a
    prediction."""
    calibrated = known.inputs.tables["model_parameters"]["machine"]
    timed = known.fresh[known.fresh["metric"] == METRIC]
    timed = timed[timed["machine"].isin(calibrated)]
    absent: dict[tuple[str, str, str], list[str]] = {}
    for cell in {*_cells(timed)} - {*_cells(known.inputs.tables["model"])}:
        if access_of(*known.cases[cell[1:]]):
            absent.setdefault(cell[:3], []).append(cell[3])
    for place, names in absent.items():
        yield from _absent(place, names, "a prediction")


def _untested_claims(known: _Known) -> Iterator[Fault]:
    """Claims that are not tested for want of evidence, or that no machine's results mention."""
    inputs = known.inputs
    rows = rows_of(inputs.tables["claims"], ClaimRow)
    for row in rows:
        if row.verdict == NOT_TESTED and MISSING in row.reason:
            yield Fault(f"claim {row.claim}", row.reason, row.machine, row.study)
    judged = {(row.study, row.claim) for row in rows}
    measured = {study for name in ("summary", "skipped") for study in inputs.tables[name]["study"]}
    for study in (inputs.studies[name] for name in measured & {*inputs.studies}):
        for claim in study.claims:
            if (study.name, claim.id) not in judged:
                yield Fault(f"claim {claim.id}", "expected a verdict, got none", "", study.name)


def _removed_claims(known: _Known) -> Iterator[Fault]:
    """Claims that fresh runs judge, as they have recorded the bounds, and that are gone: no claim
    has their comparisons."""
    gone: dict[tuple[str, str], str] = {}
    for machine, name, variant in {cell[:3] for cell in _cells(known.fresh)}:
        study = known.inputs.studies[name]
        names = {claim.id for claim in study.claims} | {*study.withdrawn}
        for run in known.inputs.fresh_runs((machine, name, variant)):
            for claim, recorded in run.bounds.items():
                if claim not in names and not study.bounds.issuperset(recorded):
                    gone[name, claim] = machine
    for (name, claim), machine in gone.items():
        what = "expected it in study.yaml, since runs recorded its bounds, got none"
        yield Fault(f"claim {claim}", what, machine, name)


def _rates_beyond_the_link(known: _Known) -> Iterator[Fault]:
    """Payload rates above that of the link, in cases whose bytes all cross it once."""
    links = {row.machine: row for row in known.inputs.parameters if row.parameter == "link_rate"}
    is_whole = known.summary["metric"].isin(WHOLE) & known.summary["machine"].isin(links)
    for row in rows_of(known.summary[is_whole], MeasuredRow):
        link, (_, case) = links[row.machine], known.cases[row.study, row.variant, row.case]
        most = max(link.value, link.ci_high) if link.ci_high > 0 else link.value
        rate = case.payload_bytes / row.median
        filters = known.inputs.studies[row.study].crosses_once
        is_once = any(all(case.values.get(k) in v for k, v in one.items()) for one in filters)
        if rate > most and is_once:
            what = (
                f"expected at most {most / 1e9:.3g} GB/s, the rate of the link, in {row.case} by"
                f" {row.metric}, got {rate / 1e9:.3g} GB/s"
            )
            yield Fault(row.variant, what, row.machine, row.study)


def _device_times_above_host(known: _Known) -> Iterator[Fault]:
    """Device times that in all of several runs exceed the host time of the same cell.

    Not of those that pages label: of a copy behind a kernel, which begins late, and with the host's
    calls. Nor of warm cases, of which only the host times are warm, nor of operations so long that
    nothing warms them up: their device time comes first after the check.
    """
    rows = rows_of(known.fresh[known.fresh["metric"].isin([METRIC, HOST])], MeasuredRow)
    hosts = {_cell(row): row for row in rows if row.metric == HOST}
    for row in (row for row in rows if row.metric == METRIC):
        host = hosts.get(_cell(row))
        variant, case = known.cases[row.study, row.variant, row.case]
        is_labelled = variant.copies_alone or variant.host_work or variant.waits
        is_labelled = is_labelled or bool(case.device_above_host)
        if host is None or is_labelled or case.warm or host.median >= MIN_UNWARMED_S:
            continue
        runs = [*zip(figures_by_run(row), figures_by_run(host), strict=False)]
        is_above = row.median > host.median * (1 + SAME_WITHIN)
        if is_above and len(runs) >= MIN_RUNS and all(one > other for one, other in runs):
            what = (
                f"expected at most the host time, {quantity(host.median, 's')}, as device time in"
                f" {row.case}, got {quantity(row.median, 's')}"
            )
            yield Fault(row.variant, what, row.machine, row.study)


def _beaten_ceilings(known: _Known) -> Iterator[Fault]:
    """Fresh times that beat a ceiling of their variant, for which study.yaml gives no reason. Not
    by the device time of copies alone."""
    cells = {*known.fresh[[*CELL, "metric"]].itertuples(index=False, name=None)}
    ratios = known.inputs.tables["ratios"]
    for study in known.inputs.studies.values():
        ceilings = [one.name for one in study.with_role("ceiling")]
        inputs = known.inputs.with_tables(ratios=ratios[ratios["against"].isin(ceilings)])
        for row in StudyFacts(inputs, study).ratios.values():
            variant = study.variant(row.variant)
            ceiling = next((c for c in study.ceilings_of(variant) if c.name == row.against), None)
            if ceiling is None or ceiling.name in variant.beats:
                continue
            pair = (row.variant, row.against)
            both = {(row.machine, study.name, name, row.case, row.metric) for name in pair}
            is_faster = row.verdict == "faster" and row.ci_low > 1
            if is_faster and both <= cells and not (row.metric == METRIC and ceiling.copies_alone):
                what = (
                    f"expected at most the speed of {row.against} in {row.case} by {row.metric}, or"
                    f" its reason under `beats`, got {row.ratio:.3g} times it"
                )
                yield Fault(row.variant, what, row.machine, study.name)


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


def added(inputs: Inputs) -> set[tuple[str, str, str]]:
    """The variants that no run of a machine knows, and the claims about them: the machine, the
    study and the part of their faults. Of a study that a machine has not measured, all variants, if
    the study's first run anywhere is later than all runs of that machine."""
    known: dict[tuple[str, str], set[str]] = {}
    for run in inputs.runs:
        known.setdefault((run.machine, run.study), set()).update(run.variants)
    latest = {
        machine: max(run.start for run in inputs.runs if run.machine == machine)
        for machine, _ in known
    }
    found = set()
    for name, study in inputs.studies.items():
        first = min((run.start for run in inputs.runs if run.study == name), default="")
        for machine in latest:
            if (machine, name) not in known and not latest[machine] < first:
                continue
            new = {*study.variant_names} - known.get((machine, name), {""})
            claims = [claim for claim in study.claims if new & claim.bounds_by_variant.keys()]
            parts = [*new, *(f"claim {claim.id}" for claim in claims)]
            found |= {(machine, name, part) for part in parts}
            if (machine, name) not in known:
                found.add((machine, name, ""))
    return found


def _cells(table: pd.DataFrame) -> list[Cell]:
    return list(table[CELL].itertuples(index=False, name=None))


def _cases(studies: Mapping[str, Study]) -> dict[tuple[str, str, str], tuple[Variant, Case]]:
    return {
        (study.name, variant.name, case.id): (variant, case)
        for study in studies.values()
        for variant in study.variants
        for case in variant.cases
    }
