"""Links with times by the model: known parameters for fits, and a machine that has them."""

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from analysis import ROOT
from analysis.results.model.terms import Parameters, predicted_seconds, work_of
from analysis.study import Case, Variant
from analysis.study.access import Access, access_of
from tests.repository import STUDIES, copy_studies
from tests.roots import make_root
from tests.synthetic import plausible, write_machine

GATHER, CALIBRATION = STUDIES["h2d_gather"], STUDIES["link_calibration"]

SMS = 132
"""SMs of the machines that tests.synthetic describes."""
TRUE = Parameters(
    link_rate=59e9,
    half_line=6.0,
    request_rate=0.82e9,
    sm_request_rate=37e6,
    latency=1.9e-6,
    start_up=4e-6,
    index_latency=0.6e-6,
    copy_engine_start_up=2e-6,
)
KNOWN = replace(
    TRUE,
    held_entries=8192,
    walk=14e-9,
    held_regions=512,
    region_walk=10e-9,
    region_wait=100e-9,
    table_miss=14e-9,
    row_cache=48 * 2**20,
)
"""With a walker."""
MIB = 2**20


def rows(row_bytes: int, stride_bytes: int = 0, **more: Any) -> Access:
    """16 MiB read by warps in rows, one row in flight."""
    sizes = {"stride_bytes": stride_bytes or row_bytes, "in_flight_bytes": row_bytes}
    return Access("warp_rows", 16 * MIB // row_bytes * row_bytes, row_bytes, **sizes | more)


def true_seconds(variant: Variant, case: Case, metric: str) -> float:
    """Predictions of the model for every variant with a link."""
    access = access_of(variant, case)
    if access is None:
        return plausible(variant, case, metric)
    return float(predicted_seconds(np.array([work_of(access, SMS)]), TRUE.values())[0])


def model_root(folder: Path) -> Path:
    """A repository of the two studies that the model is about, and their pages; of the others that
    they link, only headings."""
    root = make_root(folder)
    for made_up in ("kernels", "docs/studies", "results/published"):
        shutil.rmtree(root / made_up)
    shutil.copytree(ROOT / "docs" / "studies", root / "docs" / "studies")
    for page in (root / "docs" / "studies").glob("*.md"):
        if page.stem not in (GATHER.name, CALIBRATION.name):
            page.write_text("\n\n".join(re.findall(r"^#+ .*", page.read_text(), re.MULTILINE)))
    (root / "results" / "published").mkdir()
    copy_studies(root, [GATHER.name, CALIBRATION.name])
    shutil.copy(ROOT / "docs" / "glossary.md", root / "docs")
    return root


def made_up(folder: Path, seconds: Callable[[Variant, Case, str], float] = true_seconds) -> Path:
    """Such a repository whose machine `box` has measured both, with 1 % of noise."""
    root = model_root(folder)
    for study in (GATHER, CALIBRATION):
        write_machine(root / "results", "box", study, seconds=seconds, rounds=4)
    return root
