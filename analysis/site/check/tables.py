"""Faults of the tables: what is missing although its samples are fresh, and what cannot be true."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

import pandas as pd

from analysis.base.quantities import quantity
from analysis.base.statistics import MIN_RUNS, SAME_WITHIN
from analysis.results.model import METRIC
from analysis.results.model.fit import NAMES
from analysis.results.model.terms import BINDS, TRANSLATION
from analysis.results.store import MIN_UNWARMED_S
from analysis.site.charts.columns import WHOLE
from analysis.site.check.faults import Fault
from analysis.site.facts.basis import figures_by_run
from analysis.site.facts.figures import Figures
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.rows import ClaimRow, MeasuredRow, rows_of
from analysis.study import Case, Study, Variant, calibrating
from analysis.study.access import access_of
from analysis.study.calibration import OF_WALKS, determined
from analysis.study.claims.verdicts import MISSING, NOT_TESTED

Cell = tuple[str, str, str, str]
"""Machine, study, variant and case."""
CELL = ["machine", "study", "variant", "case"]


def table_faults(inputs: Inputs) -> Iterator[Fault]:
    yield from _absent_cases(inputs)
    yield from _unknown_parameters(inputs)
    yield from _absent_predictions(inputs)
    yield from _untested_claims(inputs)
    yield from _removed_claims(inputs)
    yield from _beyond_the_link(inputs)
    yield from _device_above_host(inputs)
    yield from _beaten_ceilings(inputs)


def _absent_cases(inputs: Inputs) -> Iterator[Fault]:
    """Cases of the default grid that are neither measured nor skipped, in studies that the machine
    has measured."""
    known = _cells(inputs.tables["summary"]) | _cells(inputs.tables["skipped"])
    measured = {cell[:2] for cell in known}
    for machine, described in inputs.machines.items():
        for study in inputs.studies.values():
            if (machine, study.name) not in measured:
                if _is_measured_here(study, described.get("gpus") or 1):
                    yield Fault(study.name, "expected results, got none", machine)
                continue
            for variant in study.variants:
                gaps = [
                    case.id
                    for case in variant.in_grid("default")
                    if (machine, study.name, variant.name, case.id) not in known
                ]
                if gaps:
                    what = f"expected a result or a reason in {_some(gaps)}, got none"
                    yield Fault(f"{study.name}/{variant.name}", what, machine)


def _some(cases: Sequence[str]) -> str:
    """The first of some cases, and the number of the others."""
    return f"{min(cases)} and {len(cases) - 1} more" if cases[1:] else cases[0]


def _is_measured_here(study: Study, gpus: int) -> bool:
    """Whether a machine with this number of GPUs measures the study: one with several measures only
    studies of several."""
    needed = max(variant.gpus for variant in study.variants)
    return needed <= gpus if gpus == 1 else needed > 1


def _unknown_parameters(inputs: Inputs) -> Iterator[Fault]:
    """Parameters without a value on machines with fresh calibrations."""
    values: defaultdict[tuple[str, str], float] = defaultdict(lambda: math.nan)
    values |= {(row.machine, row.parameter): row.value for row in inputs.parameters}
    calibrations = {name: inputs.studies[name] for name in calibrating(inputs.studies)}
    fresh = _fresh(inputs)
    for name, study in calibrations.items():
        is_of_walks = determined(study) is OF_WALKS
        parameters = [name for name in NAMES if (BINDS.get(name) == TRANSLATION) == is_of_walks]
        for machine in fresh.loc[fresh["study"] == name, "machine"].unique():
            unknown = [
                one for one in parameters if math.isnan(values.get((machine, one), math.nan))
            ]
            if unknown:
                what = f"expected parameters of the model, got none for {', '.join(unknown)}"
                yield Fault(name, what, str(machine))


def _absent_predictions(inputs: Inputs) -> Iterator[Fault]:
    """Fresh, checked times with a description of their reads, on calibrated machines, without a
    prediction."""
    predicted = _cells(inputs.tables["model"])
    calibrated = {row.machine for row in inputs.parameters}
    fresh, cases = _fresh(inputs), _cases(inputs)
    absent: dict[tuple[str, str], list[str]] = {}
    for cell in _cells(fresh[fresh["metric"] == METRIC]) - predicted:
        machine, study, variant, case = cell
        if machine in calibrated and cell[1:] in cases and access_of(*cases[cell[1:]]):
            absent.setdefault((machine, f"{study}/{variant}"), []).append(case)
    for (machine, where), names in absent.items():
        yield Fault(where, f"expected a prediction in {_some(names)}, got none", machine)


def _untested_claims(inputs: Inputs) -> Iterator[Fault]:
    """Claims that are not tested for want of evidence, or that no machine's results mention."""
    rows = rows_of(inputs.tables["claims"], ClaimRow)
    for row in rows:
        if row.verdict == NOT_TESTED and MISSING in row.reason:
            yield Fault(f"{row.study}: claim {row.claim}", row.reason, row.machine)
    judged = {(row.study, row.claim) for row in rows}
    measured = {*inputs.tables["summary"]["study"], *inputs.tables["skipped"]["study"]}
    for study in inputs.studies.values():
        for claim in study.claims:
            if study.name in measured and (study.name, claim.id) not in judged:
                yield Fault(f"{study.name}: claim {claim.id}", "expected a verdict, got none")


def _removed_claims(inputs: Inputs) -> Iterator[Fault]:
    """Claims that fresh runs judge, as they have recorded the bounds, and that are gone."""
    fresh = _fresh(inputs)
    measured = {*fresh[["machine", "study", "variant"]].itertuples(index=False, name=None)}
    gone: dict[tuple[str, str], str] = {}
    for key in measured & inputs.runs_of.keys():
        machine, name, _ = key
        if name in inputs.studies:
            study = inputs.studies[name]
            known = {claim.id for claim in study.claims} | {*study.withdrawn}
            named = {claim for run in inputs.fresh_runs(key) for claim in run.bounds}
            gone |= {(name, one): machine for one in named - known}
    for (name, claim), machine in gone.items():
        what = "expected it in study.yaml, since runs recorded its bounds, got none"
        yield Fault(f"{name}: claim {claim}", what, machine)


def _beyond_the_link(inputs: Inputs) -> Iterator[Fault]:
    """Payload rates above that of the link, in cases whose bytes all cross it once."""
    rates = {row.machine: row for row in inputs.parameters if row.parameter == "link_rate"}
    cases = _cases(inputs)
    for row in rows_of(inputs.tables["summary"], MeasuredRow):
        key = row.study, row.variant, row.case
        if row.machine not in rates or key not in cases:
            continue
        study, (_, case) = inputs.studies[row.study], cases[key]
        if row.metric not in WHOLE or not study.crosses_link_once(case):
            continue
        link, rate = rates[row.machine], case.payload_bytes / row.median
        most = max(link.value, link.ci_high) if math.isfinite(link.ci_high) else link.value
        if rate > most:
            what = (
                f"expected at most {most / 1e9:.3g} GB/s, the rate of the link, in {case.id} by"
                f" {row.metric}, got {rate / 1e9:.3g} GB/s"
            )
            yield Fault(f"{row.study}/{row.variant}", what, row.machine)


def behind(inputs: Inputs) -> set[tuple[str, str]]:
    """The machines and studies that wait for a measurement: with results of other code in cases
    that the study has now; with a link of such a calibration; or new on such a machine."""
    tables = [inputs.tables[name] for name in ("summary", "skipped")]
    now = _cases(inputs).keys()
    stale = {
        cell[:2]
        for table in tables
        for cell in _cells(table[table["stale"] == 1])
        if cell[1:] in now
    }
    calibrations = calibrating(inputs.studies)
    measured = {cell[:2] for table in tables for cell in _cells(table)}
    found = {*stale}
    for machine in {machine for machine, _ in stale}:
        has_link = not any((machine, name) in stale for name in calibrations)
        found |= {
            (machine, study.name)
            for study in inputs.studies.values()
            if (machine, study.name) not in measured or (study.has_link and not has_link)
        }
    return found


def _device_above_host(inputs: Inputs) -> Iterator[Fault]:
    """Device times that in all of several runs exceed the host time of the same cell.

    Not of those that pages label: of a copy behind a kernel, which begins late, and with the host's
    calls. Nor of warm cases, of which only the host times are warm, nor of operations so long that
    nothing warms them up: their device time comes first after the check.
    """
    cases = _cases(inputs)
    rows = rows_of(_fresh(inputs), MeasuredRow)
    times = {(row.machine, row.study, row.variant, row.case, row.metric): row for row in rows}
    for (machine, study, name, at, metric), device in times.items():
        host = times.get((machine, study, name, at, "host_time"))
        variant, case = cases.get((study, name, at), (None, None))
        if metric != "gpu_time" or host is None or variant is None or case is None:
            continue
        is_above = device.median > host.median * (1 + SAME_WITHIN)
        runs = [*zip(figures_by_run(device), figures_by_run(host), strict=False)]
        agree = len(runs) >= MIN_RUNS and all(one > other for one, other in runs)
        is_labelled = variant.copies_alone or variant.host_work or variant.waits
        is_labelled = is_labelled or bool(case.device_above_host)
        is_warmed_up = host.median < MIN_UNWARMED_S and not case.warm
        if is_above and agree and is_warmed_up and not is_labelled:
            what = (
                f"expected at most the host time, {quantity(host.median, 's')}, as device time in"
                f" {at}, got {quantity(device.median, 's')}"
            )
            yield Fault(f"{study}/{name}", what, machine)


def _beaten_ceilings(inputs: Inputs) -> Iterator[Fault]:
    """Fresh times that beat a ceiling of their variant, for which study.yaml gives no reason. Not
    by the device time of copies alone."""
    cells = set(_fresh(inputs)[[*CELL, "metric"]].itertuples(index=False, name=None))
    for study in inputs.studies.values():
        ceilings = {
            (variant.name, ceiling.name): ceiling
            for variant in study.variants
            for ceiling in study.ceilings_of(variant)
            if ceiling.name not in variant.beats
        }
        for row in Figures(inputs, study).ratios.values():
            ceiling = ceilings.get((row.variant, row.against))
            where = row.machine, study.name
            both = {(*where, name, row.case, row.metric) for name in (row.variant, row.against)}
            is_beaten = row.verdict == "faster" and row.ci_low > 1
            if ceiling is None or not is_beaten or not both <= cells:
                continue
            if row.metric != "gpu_time" or not ceiling.copies_alone:
                what = (
                    f"expected at most the speed of {row.against} in {row.case} by {row.metric},"
                    f" or its reason under `beats`, got {row.ratio:.3g} times that"
                )
                yield Fault(f"{study.name}/{row.variant}", what, row.machine)


def _fresh(inputs: Inputs) -> pd.DataFrame:
    """Fresh, checked rows of the summary."""
    summary = inputs.tables["summary"]
    return summary[(summary["stale"] == 0) & (summary["verified"] == 1)]


def _cells(table: pd.DataFrame) -> set[Cell]:
    return set(zip(*(table[name] for name in CELL), strict=True))


def _cases(inputs: Inputs) -> dict[tuple[str, str, str], tuple[Variant, Case]]:
    """Every case with its variant, by study, variant and case."""
    return {
        (study.name, variant.name, case.id): (variant, case)
        for study in inputs.studies.values()
        for variant in study.variants
        for case in variant.cases
    }
