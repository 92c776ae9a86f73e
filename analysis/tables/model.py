"""build/model.csv, build/model_parameters.csv and build/model_counters.csv of every machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.model import METRIC
from analysis.model.access import access_of
from analysis.model.fit import NAMES, Fit, fit, held_back
from analysis.model.judge import calibrating
from analysis.model.terms import TERMS, UNITS, WORK, predicted_seconds, term_seconds, work_of
from analysis.study import Study
from analysis.tables.counters import COUNTER_COLUMNS, compare_counters
from analysis.tables.rows import ModelRow, ParameterRow, columns

MODEL_COLUMNS = columns(ModelRow)
PARAMETER_COLUMNS = columns(ParameterRow)


@dataclass(frozen=True)
class ModelTables:
    """Tables with MODEL_COLUMNS, PARAMETER_COLUMNS and COUNTER_COLUMNS."""

    model: pd.DataFrame
    parameters: pd.DataFrame
    counters: pd.DataFrame


def model_tables(
    results: Path,
    summary: pd.DataFrame,
    machines: Mapping[str, Mapping[str, Any]],
    studies: Mapping[str, Study],
) -> ModelTables:
    """Fit each of `machines` to its calibration, then predict every fresh row that has a `link`.

    `summary` is the table of build/summary.csv; `machines` are descriptions with the number of
    `sms`. A machine without that number, or with too few calibration cases, has no parameters and
    no predictions. Counters need neither. FieldError if a study's `link` is invalid.
    """
    model, parameters = [], []
    for machine, description in machines.items():
        sms = description.get("sms")
        if not isinstance(sms, int) or sms < 1:
            continue
        rows = _fresh_rows(summary[summary["machine"] == machine], studies, sms)
        fitted = fit_machine(rows, studies)
        if fitted is None:
            continue
        model.append(_predictions(rows, fitted))
        parameters.append(_parameters(machine, fitted))
    return ModelTables(
        model=_stacked(model, MODEL_COLUMNS),
        parameters=_stacked(parameters, PARAMETER_COLUMNS),
        counters=_stacked(
            [compare_counters(results, machine, studies) for machine in machines], COUNTER_COLUMNS
        ),
    )


def fit_machine(rows: pd.DataFrame, studies: Mapping[str, Study]) -> Fit | None:
    """One machine's parameters, from its calibration rows that are not held back.

    The error of a time is half the width of its interval.
    """
    seen = rows[rows["study"].isin(calibrating(studies)) & (rows["held_back"] == 0)]
    work = np.array(seen["work"].tolist(), dtype=float).reshape(-1, len(WORK))
    seconds, low, high = seen[["measured", "ci_low", "ci_high"]].to_numpy(dtype=float).T
    return fit(work, seconds, (high - low) / 2 / seconds)


def _fresh_rows(summary: pd.DataFrame, studies: Mapping[str, Study], sms: int) -> pd.DataFrame:
    """Fresh, verified rows that can be predicted, in the order of the studies, with `work`."""
    good = summary[
        (summary["metric"] == METRIC) & (summary["stale"] == 0) & (summary["verified"] == 1)
    ]
    measured = {(row["study"], row["variant"], row["case"]): row for row in good.to_dict("records")}
    rows = [
        measured[key] | {"measured": measured[key]["median"], "work": work, "held_back": kept}
        for key, work, kept in _known_work(studies, sms)
        if key in measured
    ]
    return pd.DataFrame(rows, columns=[*MODEL_COLUMNS, "work", "ci_low", "ci_high"])


def _known_work(
    studies: Mapping[str, Study], sms: int
) -> Iterator[tuple[tuple[str, str, str], tuple[float, ...], int]]:
    """(study, variant, case), its row of the model's input, and whether it is held back from the
    fit.

    A third of the cases of each calibration variant is held back, in the order of study.yaml,
    whether they were measured or not.
    """
    for study in studies.values():
        for variant in study.variants:
            out = held_back(len(variant.cases)) & study.calibrates
            for case, kept in zip(variant.cases, out, strict=True):
                access = access_of(variant, case)
                if access is not None:
                    yield (study.name, variant.name, case.id), work_of(access, sms), int(kept)


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
        }
    )


def _stacked(frames: list[pd.DataFrame], columns: list[str]) -> pd.DataFrame:
    frames = [frame for frame in frames if not frame.empty]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)
