"""Tables of the page: the cost of a row that crosses NVLink, and rates by number of GPUs."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from analysis.api.charts import PageTable, StudyFacts, machines_by_evidence
from analysis.api.quantities import binary, quantity, whole

SECTOR, LINE = 32, 128
"""Bytes: a GPU reads whole sectors, and asks for those of a line at once."""
WITHIN: Final = 0.05
"""Maximum relative error of a good prediction."""
MIN_SIZES: Final = 8
MIN_ROWS: Final = 2**17
"""Rows of a launch whose start no longer counts."""
SMALL_MIB, LARGE_MIB = 188, 16384
LINKS: Final = {
    ("contiguous bytes, copy engines", LARGE_MIB): (
        *("host_copy_engine", "two_copy_engines_apart"),
        *("three_copy_engines_apart", "four_copy_engines_apart"),
    ),
    ("gather", SMALL_MIB): ("from_host", "two_links", "three_links", "four_links"),
    ("gather", LARGE_MIB): ("from_host", "two_links", "three_links", "four_links"),
    ("sorted, pool divided", LARGE_MIB): ("", "two_links_in_order", "", "four_links_in_order"),
    ("packed by the CPU", LARGE_MIB): ("", "two_links_packed", "", "four_links_packed"),
}
"""Variants of one to four GPUs that read rows of 656 bytes, by way and pool in MiB."""


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


def links(facts: StudyFacts) -> PageTable:
    """Payload rates by way, pool and number of GPUs: a row per machine and way, with the least
    number of runs of its figures."""
    points = facts.points
    points = points[(points["metric"] == "gpu_time") & points["rate"].notna()]
    points = points[(points["case_row_bytes"] == 656) & (points["case_rows"] == 262144)]
    rows = []
    for machine in machines_by_evidence(facts):
        of_machine = points[points["machine"] == machine]
        for (way, pool), names in LINKS.items():
            found = of_machine[of_machine["case_pool_mib"] == pool].set_index("variant")
            found = found.loc[[name for name in names if name in found.index]]
            if found.empty:
                continue
            rates = [f"{found['rate'][name]:.3g}" if name in found.index else "" for name in names]
            row = [facts.inputs.called(machine), way, binary(pool * 2**20), *rates]
            rows.append([*row, str(found["runs"].astype(int).min())])
    counts = ["1 GPU", "2 GPUs", "3 GPUs", "4 GPUs"]
    columns = ["machine", "rows of 656 bytes, in GB/s", "pool", *counts, "runs"]
    return PageTable(columns, rows, "No machine has measured several GPUs.", columns[2:])


TABLES: Final = {"nvlink": nvlink, "links": links}
