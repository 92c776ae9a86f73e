"""A repository with captures: counters and timelines, fresh, stale and rejected."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from analysis.measure.profile.ncu import parse
from analysis.measure.profile.session import normalised
from analysis.results.store.records import Counter
from analysis.study import discover, find_study
from tests.roots import make_root
from tests.synthetic import set_capture, write_machine

REAL = (Path(__file__).parent / "measure" / "h100_gather.ncu.csv").read_text()
"""Report of Nsight Compute on the gather's variants."""
EVENTS: Any = [
    (1, 200_000_001, None, "host call", "cudaLaunchKernel", None, 1),
    (2_001, 200_000_001, 7, "kernel", "_Z4copyv", None, 1),
    (200_000_001, 200_002_001, 7, "memcpy", "memcpy", 64, 2),
]


def captured_root(folder: Path) -> Path:
    """Made-up samples on one machine; of two steps fresh counters and timelines, of the third
    stale ones, of the fourth a refusal, and of the fifth nothing."""
    root = make_root(folder / "root")
    study = discover(root)["copy"]
    steps = [step.name for step in study.with_role("step")][:4]
    write_machine(root / "results", "box", study)
    counted: dict[str, list[Counter]] = {}
    cases = dict.fromkeys(find_study("h2d_gather").variant_names, study.headline)
    for counter in parse(REAL, cases):
        counted.setdefault(counter.variant, []).append(counter)
    one = next(iter(counted.values()))
    counters = [replace(counter, variant=name) for name in steps[:3] for counter in one]
    events = [event for name in steps[:3] for event in normalised(name, EVENTS)]
    stale = {"source_sha256": "0" * 64}
    refused = {"status": "not captured: counters need <permission>"}
    variants = dict(zip(steps, ({}, {}, stale, refused), strict=True))
    set_capture(root / "results", "box", study, "counters", variants, counters)
    set_capture(root / "results", "box", study, "timeline", variants, events)
    return root
