"""build/model.csv and build/model_parameters.csv: what the link model predicts on every machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from analysis.results.model.fit import NAMES, Fit
from analysis.results.model.terms import ABOUT, TERMS, WORK, predicted_seconds, term_seconds
from analysis.results.tables.links import predictable, work_on
from analysis.results.tables.rows import ModelRow, ParameterRow, columns, stacked
from analysis.study import Study

MODEL_COLUMNS = columns(ModelRow)
PARAMETER_COLUMNS = columns(ParameterRow)


def model_table(
    summary: pd.DataFrame,
    fits: Mapping[str, Fit],
    machines: Mapping[str, Mapping[str, Any]],
    studies: Mapping[str, Study],
) -> pd.DataFrame:
    """A prediction for every fresh row of `summary` that has a `link`, in MODEL_COLUMNS.

    `machines` are as `collect` gives them; those without a fit have no predictions.
    """
    tables = [
        _predictions(
            predictable(summary[summary["machine"] == machine], work_on(description, studies)),
            fits[machine],
        )
        for machine, description in machines.items()
        if machine in fits
    ]
    return stacked(tables, MODEL_COLUMNS)


def parameter_table(fits: Mapping[str, Fit]) -> pd.DataFrame:
    """Every parameter of every machine, in PARAMETER_COLUMNS."""
    return stacked([_parameters(*one) for one in fits.items()], PARAMETER_COLUMNS)


def _predictions(rows: pd.DataFrame, fitted: Fit) -> pd.DataFrame:
    work = np.array(rows["work"].tolist(), dtype=float).reshape(-1, len(WORK))
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
            "unit": [ABOUT[name].unit for name in NAMES],
            "ci_low": fitted.low.values(),
            "ci_high": fitted.high.values(),
            "cases": fitted.cases,
            "runs": fitted.runs,
        }
    )
