"""A small study with claims, samples and published figures, and its verdicts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.results.collect import collect
from analysis.results.store.records import Counter
from analysis.results.tables.claims import claim_tables
from analysis.results.tables.links import COUNT_COLUMNS, counts
from analysis.results.tables.rows import ClaimPartRow, ClaimRow, rows_of
from analysis.study import Case, Study, Variant, load_study
from tests.synthetic import (
    Sample,
    description,
    samples_of,
    set_capture,
    write_description,
    write_run,
)

FEW_SMS: dict[str, Any] = {"kind": "figure", "of": "fast", "metric": "sms_used"}
SPEEDUP: dict[str, Any] = {"kind": "speedup", "of": "fast", "over": "slow", "at_least": 1}
CASE = "rows=1000000"
OTHER = "rows=2"
ROW_BYTES = 64
OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
SECONDS = {"slow": 8e-3, "fast": 2e-3, "wide": 2e-3, "host": 4e-3, "limit": 1e-3}
"""Seconds by variant; by variant and case, if these differ. `wide` has rows of twice the size, so
twice the rate of `fast`."""
PUBLISHED = """variant,case,metric,printed,unit_printed,unit_meant,source,note
slow,rows=1000000,gpu_time,8.0000,ms,ms,Notes,mean
slow,rows=1000000,throughput,7.45,GB/s,GiB/s,Notes,bytes divided by 1024^3
fast,rows=1000000,gpu_time,2.0000,ms,ms,Notes,mean
fast,rows=1000000,throughput,29.80,GB/s,GiB/s,Notes,bytes divided by 1024^3
"""


def claim(id: str = "it", **test: Any) -> dict[str, Any]:
    return {"id": id, "says": "It is so.", "test": test}


def describe(*claims: Mapping[str, Any]) -> dict[str, Any]:
    rows: dict[str, list[int]] = {"rows": [1_000_000, 2], "share": [0, 1]}
    sets = {"only": {"rows": rows["rows"][:1]}, "other": {"rows": rows["rows"][1:]}, "given": rows}
    return description(
        "Copy",
        {
            "gpu_time": ("s", "device time"),
            "host_time": ("s", "host time"),
            "sms_used": ("1", "SMs"),
        },
        {name: {**one, "payload_bytes": "rows * row_bytes"} for name, one in sets.items()},
        [
            {"name": "slow", "cases": [*sets]},
            {"name": "fast", "cases": ["only", "other"]},
            {"name": "wide", "constants": {"row_bytes": 2 * ROW_BYTES}},
            {"name": "host", "host_work": True},
            {"name": "limit", "role": "ceiling"},
        ],
        headline={"rows": 1_000_000},
        constants={"row_bytes": ROW_BYTES},
        write_up={"title": "Notes", "date": None},
        **({"claims": list(claims)} if claims else {}),
    )


def write_study(root: Path, *claims: Mapping[str, Any], **keys: Any) -> Study:
    """The study with these claims, and with other values of some keys of its cases."""
    described = describe(*claims)
    described["cases"]["only"] |= keys
    return load(root, described)


def load(root: Path, described: Mapping[str, Any]) -> Study:
    """The study of this description, with its sources."""
    path = write_description(root / "copy", described)
    for name in SECONDS:
        path.with_name(f"{name}.py").touch()
    return load_study(path)


def measure(
    results: Path,
    study: Study,
    seconds: Mapping[Any, float] = SECONDS,
    *,
    rounds: int = 8,
    run: str = NEW,
    machine: str = "box",
    then: Study | None = None,
    change: Callable[[Sample], Sample] = lambda sample: sample,
    visits: Sequence[float] = (1.0,),
    host: str = "",
) -> None:
    """Samples of the variants in `seconds`, gpu_time and host_time alike. The run names the bounds
    of `then`, the study as it was; without one, none. A round has `visits`, each of which takes as
    many times the seconds."""

    def taken(variant: Variant, case: Case, metric: str) -> float:
        return seconds.get((variant.name, case.id), seconds[variant.name])

    given = {"host": host} if host else {}
    for name in (name for name in seconds if isinstance(name, str)):
        variant = study.variant(name)
        samples = samples_of(study, variant, seconds=taken, noise=1e-4, rounds=rounds, run=run)
        bounds = then.bounds_of(name) if then else {}
        samples = [
            change(replace(sample, value=(sample.value or 0) * factor, sample=number))
            for sample in samples
            for number, factor in enumerate(visits)
        ]
        write_run(results, machine, study, samples, host=given, bounds=bounds)


COUNTED, SECTORS = "lts__t_requests.sum", "lts__t_sectors.sum"


def count(results: Path, study: Study, then: Study | None = None, **requests: float) -> None:
    """Profiles of variants, whose two kernels together make `requests`, each of four sectors. They
    name the bounds of `then`, as `measure` has it."""
    entries = {
        name: {"bounds": then.bounds_of(name, counted=True) if then else {}} for name in requests
    }
    records = [
        Counter(name, CASE, kernel, metric, "", value / 2)
        for name, made in requests.items()
        for kernel in ("first", "second")
        for metric, value in ((COUNTED, made), (SECTORS, 4 * made))
    ]
    set_capture(results, "box", study, "counters", entries, records, NEW)


def publish(results: Path, text: str = PUBLISHED) -> None:
    """Write the figures that others published."""
    (results / "published").mkdir(parents=True, exist_ok=True)
    (results / "published" / "copy.csv").write_text(text)


NO_MODEL = pd.DataFrame(columns=["machine", "study", "variant", "case", "metric", "predicted"])
NO_COUNTS = pd.DataFrame(columns=COUNT_COLUMNS)


def tables_of(
    results: Path, study: Study, model: pd.DataFrame = NO_MODEL
) -> tuple[list[ClaimRow], list[ClaimPartRow]]:
    """The rows of claims and of their parts, with these predictions of the link model."""
    studies = {study.name: study}
    found = collect(results, studies)
    counted = counts(found, studies)
    claims, parts = claim_tables(found.samples, studies, found.published, model, counted)
    return rows_of(claims, ClaimRow), rows_of(parts, ClaimPartRow)


def judged(results: Path, study: Study) -> dict[str, ClaimRow]:
    """The row of each claim on one machine."""
    return {row.claim: row for row in tables_of(results, study)[0]}
