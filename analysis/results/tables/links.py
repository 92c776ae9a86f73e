"""The link of every machine, fitted to samples of the studies that calibrate it, and its
predictions: build/model.csv and model_parameters.csv."""

import math
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd

from analysis.base.errors import UNFORESEEN, in_words
from analysis.base.processes import forked_map
from analysis.base.records import read_records
from analysis.results.collect import CELL, Collected, collect, taken_of
from analysis.results.model import terms
from analysis.results.model.fit import FITTED, fit, held_back
from analysis.results.model.terms import ABOUT, METRIC, TERMS
from analysis.results.store.records import Counter
from analysis.results.store.runs import codes_of
from analysis.results.tables.rows import RUN_SEPARATOR, TABLES, table_of
from analysis.results.tables.summary import summarise
from analysis.study import Study, calibrating
from analysis.study.access import access_of
from analysis.study.claims.claim import still_named

Fits: TypeAlias = dict[str, pd.DataFrame | str]
"""The table of `fit` of every calibrated machine, or why it failed."""

COUNT_COLUMNS: Final = [*CELL, "metric", "counted", "named", "stale"]


def collect_fits(results: Path, studies: Mapping[str, Study]) -> Fits:
    """Fit the model of each machine to all fresh runs of its calibrations.

    A machine without its number of `sms`, or with too few calibration cases, has no fit; one whose
    fit fails has the reason.
    """
    calibrations = {name: studies[name] for name in calibrating(studies)}
    found = collect(results, calibrations, only=calibrations)

    def fitted(machine: str) -> pd.DataFrame | str | None:
        here = found.samples[found.samples["machine"] == machine]
        try:
            summary = summarise(here, calibrations)
            return fit(calibration(predictable(summary, found.machines[machine], calibrations)))
        except UNFORESEEN as error:
            newest = here[["study", "run"]].max()
            file = f"{machine}/{newest['study']}/{newest['run']}.json"
            return f"{file}: {METRIC}: expected times that a link has, got {in_words(error)}"

    fits = zip(found.machines, forked_map(fitted, found.machines), strict=True)
    return {machine: known for machine, known in fits if known is not None}


def predictable(
    summary: pd.DataFrame, host: Mapping[str, Any], studies: Mapping[str, Study]
) -> pd.DataFrame:
    """Fresh, verified rows of one machine's `summary` that can be predicted, in the order of the
    studies' cases, with `measured`, `held_back` and WORK; none if its number of `sms` is unknown.
    """
    sms = host.get("sms") or 0
    cases = [
        (study.name, variant.name, case.id, held, *terms.work_of(access, sms))
        for study in studies.values()
        for variant in study.variants
        for case, held in zip(variant.cases, held_back(study, variant), strict=True)
        if sms and (access := access_of(variant, case)) is not None
    ]
    known = pd.DataFrame(cases, columns=["study", "variant", "case", "held_back", *terms.WORK])
    is_good = summary["stale"].eq(0) & summary["verified"].eq(1) & summary["metric"].eq(METRIC)
    rows = known.merge(summary[is_good], on=["study", "variant", "case"])
    return rows.rename(columns={"median": "measured"})


def calibration(rows: pd.DataFrame) -> pd.DataFrame:
    """Input of the fit from `predictable` rows of all runs of a machine's calibrations.

    The relative error of a case is the standard deviation over runs; that of a case with one run is
    pooled over the others. If all have one run, it is half the width of the interval.
    """
    rows = rows[rows["held_back"] == FITTED]
    by_run = rows["by_run"].str.split(RUN_SEPARATOR, expand=True).astype(float)
    errors = np.log(by_run).std(axis=1)
    if errors.isna().all():
        errors = (rows["ci_high"] - rows["ci_low"]) / 2 / rows["measured"]
    pooled = math.sqrt((errors**2).mean()) if errors.notna().any() else 0.0
    return rows.assign(error=errors.fillna(pooled))


def model_table(
    summary: pd.DataFrame,
    fits: Fits,
    machines: Mapping[str, Mapping[str, Any]],
    studies: Mapping[str, Study],
) -> pd.DataFrame:
    """A prediction for each fresh row of `summary` with a `link`; `machines` as of `collect`."""
    tables = []
    for machine, host in machines.items():
        if not isinstance(known := fits.get(machine), pd.DataFrame):
            continue
        rows = predictable(summary[summary["machine"] == machine], host, studies)
        work, values = terms.work_in(rows), known["value"].to_numpy()
        limits = terms.term_seconds(work, values)
        ordered = np.sort(limits, axis=1)
        rows["predicted"] = terms.predicted_seconds(work, values)
        rows["binding"] = [TERMS[index] for index in limits.argmax(axis=1)]
        rows["margin"] = ordered[:, -1] / ordered[:, -2]
        rows["residual"] = rows["measured"] / rows["predicted"] - 1
        tables.append(rows[rows["predicted"].notna()][[*TABLES["model"]]])
    good = [table for table in tables if len(table)]
    return pd.concat(good) if good else table_of("model")


def parameter_table(fits: Fits) -> pd.DataFrame:
    """Every parameter of every machine."""
    units = [about.unit for about in ABOUT.values()]
    tables = [
        known.rename_axis("parameter").reset_index().assign(machine=machine, unit=units)
        for machine, known in fits.items()
        if isinstance(known, pd.DataFrame)
    ]
    return pd.concat(tables) if tables else table_of("model_parameters")


def counts(found: Collected, studies: Mapping[str, Study]) -> pd.DataFrame:
    """The newest counters of each variant, summed over its kernels, in COUNT_COLUMNS; `named` has
    the digests of today's claims that the profile names, a frozenset."""
    read = cache(lambda path: read_records(path, Counter))
    machines = sorted({capture.about.machine for capture in found.captures})
    of_studies = [(study, variant) for study in studies.values() for variant in study.variants]
    codes = {study.name: codes_of(study) for study in studies.values()}
    rows = []
    for machine, (study, variant) in product(machines, of_studies):
        key = machine, study.name, variant.name
        taken = taken_of(found.captures, key, "counters", codes[study.name][variant.name])
        if taken is None or not taken.is_captured:
            continue
        totals: dict[tuple[str, str], float] = defaultdict(float)
        for counter in read(taken.capture.path):
            if counter.variant == variant.name:
                totals[counter.case, counter.metric] += counter.value
        about = still_named(taken.variant.bounds, study.bounds), not taken.is_fresh
        rows += [(*key, *cell, total, *about) for cell, total in totals.items()]
    return pd.DataFrame(rows, columns=COUNT_COLUMNS)
