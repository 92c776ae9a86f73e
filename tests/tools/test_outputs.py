"""Committed outputs of tools/reach.cu, and what the pages say of its lines and keys."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from pathlib import Path
from statistics import median

import pytest

from analysis import ROOT
from analysis.site.facts.probe import OUTPUTS, probes
from analysis.study import parse_case
from tests.tools.reach import SOURCE

FIGURES = re.findall(r'put\("(\w+)", "([^"]+)"', SOURCE.read_text())
"""Key and label of each figure."""
MACHINES = sorted(path.name for path in OUTPUTS.glob("*") if path.is_dir())


def test_pages_explain_every_line_and_key() -> None:
    page = (ROOT / "docs" / "test_my_machine.md").read_text()
    contract = (ROOT / "docs" / "contract.md").read_text().partition("## The probe")[2]
    assert len(FIGURES) == 11
    for key, label in FIGURES:
        assert f"| {label} |" in page
        assert f"`{key}`" in contract
        assert all(label in text.read_text() for text in OUTPUTS.glob("*/reach.txt"))


def medians(files: Iterable[Path], variant: str) -> dict[tuple[float, float], float]:
    """Payload rates of a variant's random gathers by bytes of a row and of the pool."""
    runs: dict[tuple[float, float], dict[str, list[float]]] = {}
    for file in files:
        with file.open(newline="") as lines:
            for row in csv.DictReader(lines):
                if row["variant"] != variant or not row["gpu_time [s]"]:
                    continue
                case = parse_case(row["case"])
                if case["order"] == "random" and case["rows"] == 2**18:
                    key = float(case["row_bytes"]), float(case["pool_mib"]) * 2**20
                    times = map(float, row["gpu_time [s]"].split())
                    runs.setdefault(key, {}).setdefault(file.stem, []).extend(times)
    return {
        (size, pool): 2**18 * size / median(map(median, by_run.values()))
        for (size, pool), by_run in runs.items()
    }


def of_study(machine: str) -> dict[tuple[float, float], float]:
    files = (ROOT / "results" / machine / "translation").glob("*.csv")
    return medians((file for file in files if "." not in file.stem), "rows_streaming")


@pytest.mark.parametrize("machine", MACHINES)
def test_outputs_and_study_share_pools(machine: str) -> None:
    """The page shows how far they agree, also where a host's link is slow."""
    known = of_study(machine)
    pools = set()
    for probe in probes(OUTPUTS / machine).values():
        assert probe["covers_bytes"] == 65536
        pools |= {each[0] for each in probe["pools"] if (probe["row_bytes"], each[0]) in known}
    assert len(pools) >= 4
