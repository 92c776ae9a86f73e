"""A table of the page: the cost of a row that crosses NVLink."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from analysis.api.charts import PageTable, StudyFacts, machines_by_evidence
from analysis.api.quantities import quantity, whole

SECTOR, LINE = 32, 128
"""Bytes: a GPU reads whole sectors, and asks for those of a line at once."""
WITHIN: Final = 0.05
"""Maximum relative error of a good prediction."""
MIN_SIZES: Final = 8
MIN_ROWS: Final = 2**17
"""Rows of a launch whose start no longer counts."""


def units(row_bytes: int) -> list[float]:
    """Sectors, lines and rows that a row touches, on average over rows that follow each other."""
    starts = np.arange(LINE) * row_bytes
    return [
        float(np.mean((starts % size + row_bytes - 1) // size + 1)) for size in (SECTOR, LINE)
    ] + [1]


def costs(row_bytes: np.ndarray, seconds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of a sector, of a line and of a row, fitted to every second size, and the relative
    errors at the other sizes. `seconds` [sizes] are those of a row, by ascending size."""
    work = np.array([units(int(size)) for size in row_bytes]) / seconds[:, None]
    fitted = np.linalg.lstsq(work[::2], np.ones(len(work[::2])), rcond=None)[0]
    return fitted, work[1::2] @ fitted - 1


def nvlink(facts: StudyFacts) -> PageTable:
    """A row per machine with enough sizes of rows."""
    columns = ["machine", "a sector of 32 bytes", "a line of 128 bytes", "a row"]
    columns += ["sizes predicted", "of these within 5 %", "largest error"]
    points = facts.points
    points = points[(points["variant"] == "pulled") & (points["metric"] == "gpu_time")]
    points = points[(points["case_pool_mib"] == 188) & (points["case_rows"] >= MIN_ROWS)]
    rows = []
    for machine in machines_by_evidence(facts):
        cases: pd.DataFrame = points[points["machine"] == machine].dropna(subset="seconds")
        cases = cases.sort_values("case_row_bytes")
        if len(cases) < MIN_SIZES:
            continue
        per_row = (cases["seconds"] / cases["case_rows"]).to_numpy(float)
        fitted, errors = costs(cases["case_row_bytes"].to_numpy(int), per_row)
        row = [facts.inputs.called(machine), *(quantity(cost, "s") for cost in fitted)]
        good = int((abs(errors) <= WITHIN).sum())
        rows.append([*row, whole(len(errors)), whole(good), f"{100 * abs(errors).max():.1f} %"])
    empty = "No machine has measured enough sizes of rows."
    return PageTable(columns, rows, empty, columns[1:])


TABLES: Final = {"nvlink": nvlink}
