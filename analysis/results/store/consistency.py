"""Checks of samples against their place, the provenance beside them and study.yaml."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from analysis.base.errors import HotpathError
from analysis.results.store.samples import MalformedSamples, Sample, line_of
from analysis.study import Study

WHOLE_TIMES = ("gpu_time", "host_time", "submit_time", "op_time")
"""Times that the engine takes of whole operations, of any study."""


def check_samples(
    path: Path, samples: Sequence[Sample], runs: Mapping[str, Mapping[str, Any]]
) -> None:
    """HotpathError unless every sample belongs to a run and round in `runs`, the provenance by run,
    and every run has samples.

    A run that measured nothing has no round; its rows are in round 0.
    """
    rounds = {run: max(entry["rounds"], 1) for run, entry in runs.items()}

    def fault(sample: Sample) -> str | None:
        if sample.run not in rounds:
            return f"run: expected one of the provenance, {sorted(rounds)}, got {sample.run!r}"
        if sample.round >= rounds[sample.run]:
            return f"round: expected one below {rounds[sample.run]}, got {sample.round}"
        if sample.value == 0 and sample.metric in WHOLE_TIMES:
            return f"{sample.metric}: expected a time above 0, got 0"
        return None

    _check(path, samples, fault)
    if missing := rounds.keys() - {sample.run for sample in samples}:
        raise HotpathError(f"{path}: expected samples of the runs {sorted(missing)}, got none")


def check_described(
    path: Path, samples: Sequence[Sample], fresh: Collection[str], study: Study, variant: str
) -> None:
    """HotpathError unless every sample is as `study` describes it: of `fresh` runs a case of
    `variant` and a metric with its unit; in any run no whole operation took no time."""
    cases = {case.id for case in study.variant(variant).cases}
    units, whole_times = study.units, set(study.time_metrics)

    def fault(sample: Sample) -> str | None:
        if sample.value == 0 and sample.metric in whole_times:
            return f"{sample.metric}: expected a time above 0, got 0"
        if sample.run not in fresh:
            return None
        if sample.case not in cases:
            return f"case: expected one of study.yaml, got {sample.case!r}"
        if sample.value is None:
            return None
        if sample.metric not in units:
            return f"metric: expected one of study.yaml, got {sample.metric!r}"
        unit = units[sample.metric]
        return None if sample.unit == unit else f"unit: expected {unit!r}, got {sample.unit!r}"

    _check(path, samples, fault)


def _check(path: Path, samples: Sequence[Sample], fault: Callable[[Sample], str | None]) -> None:
    """MalformedSamples with the line of the first sample that has a `fault`."""
    for place, sample in enumerate(samples):
        if found := fault(sample):
            raise MalformedSamples(f"{path}: line {line_of(path, place)}: {found}")
