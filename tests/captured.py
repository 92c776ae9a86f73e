"""A repository with captures: counters and timelines, fresh, stale and rejected."""

from pathlib import Path
from typing import Any

from analysis.measure.profile.session import normalised
from analysis.results.store.records import Counter
from analysis.study import discover
from tests.roots import make_root
from tests.synthetic import set_capture, write_machine

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
    counted = ("copy_rows", "gpu__time_duration.sum", "ns", 10.0)
    counters = [Counter(name, study.headline, *counted) for name in steps[:3]]
    events = [event for name in steps[:3] for event in normalised(name, EVENTS)]
    stale = {"source_sha256": "0" * 64}
    refused = {"status": "not captured: counters need <permission>"}
    variants = dict(zip(steps, ({}, {}, stale, refused), strict=True))
    set_capture(root / "results", "box", study, "counters", variants, counters)
    set_capture(root / "results", "box", study, "timeline", variants, events)
    return root
