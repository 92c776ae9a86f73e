"""A repository with captures: counters and timelines, fresh, stale and rejected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from analysis.base.records import write_records
from analysis.measure.profile.ncu import parse
from analysis.measure.profile.timeline import normalised
from analysis.results.store.counters import Counter
from analysis.results.store.results import set_capture
from analysis.results.store.timelines import write_events
from analysis.study import Study, discover
from analysis.study.source import fingerprint
from tests.roots import make_root
from tests.synthetic import write_machine

REAL = (Path(__file__).parent / "measure" / "profile" / "h100_gather.ncu.csv").read_text()
"""Report of Nsight Compute on the gather's variants."""


def captured(root: Path, study: Study, name: str, kind: str, text: str, **entry: Any) -> None:
    """Put a capture of a variant beside its samples on `box`."""
    where = root / "results" / "box" / study.name / f"{name}.{kind}.csv"
    where.write_text(text)
    default = {
        "status": "captured",
        "case": study.headline,
        "at": "2026-01-02T03:04:05Z",
        "source_sha256": fingerprint(study, study.variant(name)),
    }
    set_capture(root / "results", "box", study.name, name, kind, default | entry)


def captured_root(folder: Path) -> Path:
    """Made-up samples on one machine; of two steps fresh counters and timelines, of the third
    stale ones, of the fourth a refusal, and of the fifth nothing."""
    root = make_root(folder / "root")
    study = discover(root)["copy"]
    steps = [step.name for step in study.with_role("step")]
    write_machine(root / "results", "box", study)
    counted: dict[str, list[Counter]] = {}
    for variant, counter in parse(REAL, study.headline):
        counted.setdefault(variant, []).append(counter)
    one = next(iter(counted.values()))
    for name, source in ((steps[0], {}), (steps[1], {}), (steps[2], {"source_sha256": "0" * 64})):
        write_records(folder / "c.csv", Counter, one)
        captured(root, study, name, "ncu", (folder / "c.csv").read_text(), **source)
        events = normalised(
            [
                (1, 200_000_001, None, "host call", "cudaLaunchKernel", None, 1),
                (2_001, 200_000_001, 7, "kernel", "_Z4copyv", None, 1),
                (200_000_001, 200_002_001, 7, "memcpy", "memcpy", 64, 2),
            ]
        )
        write_events(folder / "t.csv", events)
        captured(root, study, name, "timeline", (folder / "t.csv").read_text(), **source)
    for kind in ("ncu", "timeline"):
        status = "not captured: counters need <permission>"
        set_capture(root / "results", "box", "copy", steps[3], kind, {"status": status})
    return root
