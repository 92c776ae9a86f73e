"""build/model.csv, build/model_parameters.csv and build/model_counters.csv of every machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analysis.model import METRIC
from analysis.model.access import access_of
from analysis.model.fit import NAMES, Calibration, Fit, fit
from analysis.model.held_back import FITTED, held_back
from analysis.model.judge import calibrating
from analysis.model.terms import TERMS, UNITS, WORK, predicted_seconds, term_seconds, work_of
from analysis.store.collect import VariantKey
from analysis.store.counters import Counter
from analysis.study import Study
from analysis.tables.counters import COUNTER_COLUMNS, compare_counters
from analysis.tables.rows import ModelRow, ParameterRow, columns
from analysis.tables.summary import summarise

MODEL_COLUMNS = columns(ModelRow)
PARAMETER_COLUMNS = columns(ParameterRow)

KnownWork = Mapping[tuple[str, str, str], tuple[tuple[float, ...], str]]
"""By study, variant and case: the row of the model's input, and how it is held back."""


@dataclass(frozen=True)
class ModelTables:
    """Tables with MODEL_COLUMNS, PARAMETER_COLUMNS and COUNTER_COLUMNS."""

    model: pd.DataFrame
    parameters: pd.DataFrame
    counters: pd.DataFrame


def model_tables(
    counters: Mapping[VariantKey, Sequence[Counter]],
    samples: pd.DataFrame,
    summary: pd.DataFrame,
    machines: Mapping[str, Mapping[str, Any]],
    studies: Mapping[str, Study],
) -> ModelTables:
    """Fit each of `machines` to its calibration, then predict every fresh row that has a `link`.

    `counters`, `samples` and `machines` are as `collect` gives them, `summary` is of these samples.
    A machine without its number of `sms`, or with too few calibration cases, has no parameters and
    no predictions. Counters need neither. FieldError if a study's `link` is invalid.
    """
    model, parameters = [], []
    for machine, description in machines.items():
        sms = description.get("sms")
        if not isinstance(sms, int) or sms < 1:
            continue
        known = _known_work(studies, sms)
        fitted = fit(_calibrations(samples[samples["machine"] == machine], studies, known))
        if fitted is None:
            continue
        rows = _fresh_rows(summary[summary["machine"] == machine], known)
        model.append(_predictions(rows, fitted))
        parameters.append(_parameters(machine, fitted))
    return ModelTables(
        model=_stacked(model, MODEL_COLUMNS),
        parameters=_stacked(parameters, PARAMETER_COLUMNS),
        counters=_stacked(
            [compare_counters(counters, machine, studies) for machine in machines], COUNTER_COLUMNS
        ),
    )


def _calibrations(
    samples: pd.DataFrame, studies: Mapping[str, Study], known: KnownWork
) -> list[Calibration]:
    """What is fitted of each run of a machine's calibration, oldest first.

    The error of a time is half the width of its interval.
    """
    own = samples[samples["study"].isin(calibrating(studies))]
    runs = []
    for _, of_run in own.groupby("run"):
        rows = _fresh_rows(summarise(of_run), known)
        rows = rows[rows["held_back"] == FITTED]
        work = np.array(rows["work"].tolist(), dtype=float).reshape(-1, len(WORK))
        seconds, low, high = rows[["measured", "ci_low", "ci_high"]].to_numpy(dtype=float).T
        runs.append(Calibration(work, seconds, (high - low) / 2 / seconds))
    return runs


def _fresh_rows(summary: pd.DataFrame, known: KnownWork) -> pd.DataFrame:
    """Fresh, verified rows that can be predicted, in the order of the studies, with `work`."""
    good = summary[
        (summary["metric"] == METRIC) & (summary["stale"] == 0) & (summary["verified"] == 1)
    ]
    measured = {(row["study"], row["variant"], row["case"]): row for row in good.to_dict("records")}
    rows = [
        measured[key] | {"measured": measured[key]["median"], "work": work, "held_back": held}
        for key, (work, held) in known.items()
        if key in measured
    ]
    return pd.DataFrame(rows, columns=[*MODEL_COLUMNS, "work", "ci_low", "ci_high"])


def _known_work(studies: Mapping[str, Study], sms: int) -> KnownWork:
    known = {}
    for study in studies.values():
        for variant in study.variants:
            for case, held in zip(variant.cases, held_back(study, variant), strict=True):
                access = access_of(variant, case)
                if access is not None:
                    known[study.name, variant.name, case.id] = work_of(access, sms), held
    return known


def _predictions(rows: pd.DataFrame, fitted: Fit) -> pd.DataFrame:
    work = np.array(rows["work"].tolist(), dtype=float)
    values = fitted.parameters.values()
    terms = term_seconds(work, values)
    ordered = np.sort(terms, axis=1)
    table = rows.assign(
        predicted=predicted_seconds(work, values),
        binding=[TERMS[index] for index in terms.argmax(axis=1)],
        margin=ordered[:, -1] / ordered[:, -2],
    )
    table["residual"] = table["measured"] / table["predicted"] - 1
    return table[table["predicted"].notna()][MODEL_COLUMNS]


def _parameters(machine: str, fitted: Fit) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "machine": machine,
            "parameter": NAMES,
            "value": fitted.parameters.values(),
            "unit": [UNITS[name] for name in NAMES],
            "ci_low": fitted.low.values(),
            "ci_high": fitted.high.values(),
            "runs": fitted.runs,
        }
    )


def _stacked(frames: list[pd.DataFrame], columns: list[str]) -> pd.DataFrame:
    frames = [frame for frame in frames if not frame.empty]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)
