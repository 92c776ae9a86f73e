"""Made-up figures of the study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from analysis.site.facts.inputs import load_inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import case_id
from tests.repository import STUDIES
from tests.synthetic import measured_row

STUDY = STUDIES["hot_set"]
GIVEN = "ceiling_misses_alone"
BLOCK = "v3_block_per_request"
TWO_KERNELS = "v2_two_kernels"

Times = Mapping[tuple[str, int, int], float]
"""Seconds by variant, requests and misses."""


def usual_case(
    requests: int, misses: int, pool_mib: int = 40960, layout: str = "scattered", layers: int = 1
) -> str:
    values: dict[str, int | str] = {"requests": requests, "topk": 2048, "slots": 4096}
    values |= {"misses": misses, "pool_mib": pool_mib, "layout": layout}
    return case_id(values | ({"layers": layers} if layers > 1 else {}))


def facts_of(
    folder: Path, rows: list[tuple[str, str, str, float]], by_run: Sequence[str] | None = None
) -> StudyFacts:
    """A machine called box that has measured (variant, case, metric, value), the figures of the
    runs as in `by_run`."""
    measured = pd.DataFrame([measured_row(STUDY, *row) for row in rows])
    if by_run is not None:
        measured["by_run"] = by_run
    nothing = load_inputs(folder, folder, {STUDY.name: STUDY})
    return StudyFacts(nothing.with_tables(summary=measured), STUDY)


def timed(times: Times) -> list[tuple[str, str, str, float]]:
    """Host times in the usual cases."""
    return [
        (variant, usual_case(requests, misses), "host_time", seconds)
        for (variant, requests, misses), seconds in times.items()
    ]


def simulated(trace: str, fetched: Mapping[str, float]) -> list[tuple[str, str, str, float]]:
    """Bytes by policy in one trace."""
    case = f"topk=2048,slots=4096,trace={trace}"
    return [(f"policy_{policy}", case, "fetched", size) for policy, size in fetched.items()]
