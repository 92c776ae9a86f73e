"""A made-up repository and made-up results in the real format.

The folder `root` holds its studies, their pages and what was published of them.
"""

from __future__ import annotations

import hashlib
import json
import random
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from analysis.base.files import write_whole
from analysis.results.store import METHOD_VERSION
from analysis.results.store.folders import MACHINE_LIMIT_BYTES
from analysis.results.store.provenance import Provenance
from analysis.results.store.results import Draft, load_variant
from analysis.results.store.samples import Sample
from analysis.site.facts.rows import MeasuredRow
from analysis.study import Case, Study, Variant, discover
from analysis.study.source import fingerprint

ROOT = Path(__file__).parent / "root"
STUDIES = discover(ROOT)
COPY = STUDIES["copy"]
"""Steps from slow to fast, others, and ceilings; over cases of three keys."""
CALLS = STUDIES["calls"]
"""Variants that any machine can run, one of them listed again, and a kernel."""

RUN = "2026-01-02T03:04:05Z"

MAX_ROUNDS = 64
"""Maximum number of rounds of a made-up run."""

Seconds = Callable[[Variant, Case, str], float]


def description(
    title: str,
    metrics: Mapping[str, tuple[str, str]],
    cases: Mapping[str, Mapping[str, Any]],
    variants: Iterable[Mapping[str, Any]],
    **more: Any,
) -> dict[str, Any]:
    """Content of a small study.yaml; `metrics` are (unit, label) by name."""
    return {
        "title": title,
        "question": "How fast?",
        "budget_s": 1,
        "metrics": {
            name: {"unit": unit, "label": label} for name, (unit, label) in metrics.items()
        },
        "cases": {name: dict(keys) for name, keys in cases.items()},
        "variants": [
            {"role": "step", "title": title, "cases": [next(iter(cases))], **variant}
            for variant in variants
        ],
        **more,
    }


def write_description(folder: Path, study: Mapping[str, Any]) -> Path:
    """study.yaml in `folder`, which is made where it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(dict(study), sort_keys=False))
    return path


def plausible(variant: Variant, case: Case, metric: str) -> float:
    """Seconds: a launch cost and a rate that differ by variant, reproducibly."""
    rate = 1e9 * (2 + zlib.crc32(variant.name.encode()) % 50)
    return (3e-6 if metric == "gpu_time" else 8e-6) + case.payload_bytes / rate


def at_rates(rates: Mapping[str, float], other: float = 9.0) -> Seconds:
    """Times at these payload rates in GB/s by variant, and at `other` of all other variants."""
    return lambda variant, case, _: case.payload_bytes / 1e9 / rates.get(variant.name, other)


def samples_of(
    study: Study,
    variant: Variant,
    *,
    run: str = RUN,
    rounds: int = 8,
    noise: float = 0.01,
    seconds: Seconds = plausible,
    grid: str = "full",
) -> list[Sample]:
    """Verified samples of every case in `grid` and time metric of `variant`, one a round."""
    random_source = random.Random(f"{run}{variant.name}")
    return [
        Sample(
            study=study.name,
            variant=variant.name,
            case=case.id,
            metric=metric,
            unit="s",
            value=seconds(variant, case, metric) * random_source.lognormvariate(0, noise),
            run=run,
            round=number,
            sample=0,
            verified=1,
            status="ok",
            reason="",
            throttle="",
            sm_mhz=1980.0,
            started_at=run,
        )
        for number in range(rounds)
        for case in variant.in_grid(grid)
        for metric in study.time_metrics
    ]


def provenance_of(study: Study, variant: Variant, *, run: str = RUN) -> Provenance:
    return {
        "run": run,
        "commit": "0" * 40,
        "dirty": False,
        "source_sha256": fingerprint(study, variant),
        "method_version": METHOD_VERSION,
        "command": "made up",
        "rounds": MAX_ROUNDS,
        "start": run,
        "end": run,
        "machine": {"gpu": "Synthetic GPU", "host": hashlib.sha256(run.encode()).hexdigest()[:12]},
    }


def write_machine(
    root: Path,
    machine: str,
    study: Study,
    *,
    variants: Iterable[Variant] | None = None,
    run: str = RUN,
    rounds: int = 8,
    noise: float = 0.01,
    seconds: Seconds = plausible,
    grid: str = "full",
) -> None:
    """Results of `variants` (all of the study's) on one machine."""
    (root / machine).mkdir(parents=True, exist_ok=True)
    description = {"gpu": "Synthetic GPU", "cpu": "Synthetic CPU", "sms": 132}
    (root / machine / "machine.json").write_text(json.dumps(description))
    for variant in study.variants if variants is None else variants:
        samples = samples_of(
            study, variant, run=run, rounds=rounds, noise=noise, seconds=seconds, grid=grid
        )
        if not samples:
            continue  # a variant without a case in this grid
        provenance = provenance_of(study, variant, run=run)
        add_run(root, machine, study.name, variant.name, samples, provenance)


def add_run(
    root: Path,
    machine: str,
    study: str,
    variant: str,
    samples: Sequence[Sample],
    provenance: Provenance,
) -> None:
    """Put one more run into the results of a machine."""
    draft = Draft(root, machine)
    draft.add_run(study, variant, samples, provenance)
    _write(root, draft)


def shrink(root: Path, machine: str, limit: int = MACHINE_LIMIT_BYTES) -> None:
    """Drop runs of a machine, those left where it cannot shrink enough included."""
    draft = Draft(root, machine)
    try:
        draft.shrink(limit)
    finally:
        _write(root, draft)


def _write(root: Path, draft: Draft) -> None:
    for name, text in draft.texts.items():
        write_whole(root / name, text)


def measured_row(study: Study, variant: str, case: str, metric: str, value: float) -> MeasuredRow:
    """A row of summary.csv: a machine called box has measured this median, in eight rounds."""
    return MeasuredRow(
        *("box", study.name, variant, case, metric, study.metrics[metric].unit),
        *(value, value, value, value, value),
        *(8, 8, 1, 0.0, 0),
        runs=1,
        hosts=1,
        by_run="",
        modes=1,
        any_low=value,
        any_high=value,
        host_factors="",
        run=RUN,
        disturbed=0,
    )


def assert_measured_once(path: Path, rounds: int) -> None:
    """Check that a variant's file has one run, in which every sample was taken once."""
    loaded = load_variant(path)
    taken = Counter((s.case, s.metric, s.round, s.sample) for s in loaded.samples)
    assert set(taken.values()) == {1}
    assert {s.round for s in loaded.samples} == set(range(rounds))
    assert {s.status for s in loaded.samples} == {"ok"}
    assert len(loaded.run_provenance()) == 1
