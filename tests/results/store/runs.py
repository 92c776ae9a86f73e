"""Results of variants, made run by run."""

from __future__ import annotations

from pathlib import Path

from analysis.results.store.results import load_variant
from analysis.study import Study
from tests.synthetic import CALLS, add_run, provenance_of, samples_of

RUNS = [f"2026-01-0{day}T03:04:05Z" for day in range(1, 7)]


def store(root: Path, run: str, study: Study = CALLS, variant: str = "kernel") -> Path:
    chosen = study.variant(variant)
    samples = samples_of(study, chosen, run=run, rounds=2)
    add_run(root, "box", study.name, variant, samples, provenance_of(study, chosen, run=run))
    (root / "box" / "machine.json").write_text('{"gpu": null}')
    return root / "box" / study.name / f"{variant}.csv"


def runs_of(path: Path) -> list[str]:
    """Runs in the order of the rows."""
    return list(dict.fromkeys(sample.run for sample in load_variant(path).samples))
