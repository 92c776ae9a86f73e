"""A small study with claims, samples and published figures, and its verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.results.collect import collect
from analysis.results.store.records import CAPTURED, Counter
from analysis.results.tables.claims import claim_tables
from analysis.results.tables.links import COUNT_COLUMNS, counts
from analysis.results.tables.rows import ClaimPartRow, ClaimRow, columns, rows_of
from analysis.study import Case, Study, Variant, load_study
from tests.synthetic import (
    Sample,
    add_run,
    description,
    provenance_of,
    samples_of,
    set_capture,
    write_description,
)

FEW_SMS = {"kind": "figure", "of": "fast", "metric": "sms_used"}
UNITS = {"kind": "units", "printed": "GB/s", "meant": "GiB/s"}
SPEEDUP = {"kind": "speedup", "of": "fast", "over": "slow", "at_least": 1}

CASE = "rows=1000000"
ROW_BYTES = 64
OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"

SECONDS = {"slow": 8e-3, "fast": 2e-3, "wide": 2e-3, "host": 4e-3, "limit": 1e-3}
"""Seconds by variant. `wide` has rows of twice the size, so twice the rate of `fast`."""

PUBLISHED = """variant,case,metric,printed,unit_printed,unit_meant,source,note
slow,rows=1000000,gpu_time,8.0000,ms,ms,Notes,mean
slow,rows=1000000,throughput,7.45,GB/s,GiB/s,Notes,bytes divided by 1024^3
fast,rows=1000000,gpu_time,2.0000,ms,ms,Notes,mean
fast,rows=1000000,throughput,29.80,GB/s,GiB/s,Notes,bytes divided by 1024^3
"""


def describe(*claims: Mapping[str, Any], write_up: bool = True) -> dict[str, Any]:
    return description(
        "Copy",
        {
            "gpu_time": ("s", "device time"),
            "host_time": ("s", "host time"),
            "sms_used": ("1", "SMs"),
        },
        {
            "only": {"rows": [1_000_000], "payload_bytes": "rows * row_bytes"},
            "other": {"rows": [2], "payload_bytes": "rows * row_bytes"},
        },
        [
            {"name": "slow", "cases": ["only", "other"]},
            {"name": "fast"},
            {"name": "wide", "constants": {"row_bytes": 2 * ROW_BYTES}},
            {"name": "host", "host_work": True},
            {"name": "limit", "role": "ceiling"},
        ],
        headline={"rows": 1_000_000},
        constants={"row_bytes": ROW_BYTES},
        **({"write_up": {"title": "Notes", "date": None}} if write_up else {}),
        **({"claims": list(claims)} if claims else {}),
    )


def write_study(root: Path, *claims: Mapping[str, Any], write_up: bool = True) -> Study:
    return described_study(root, describe(*claims, write_up=write_up))


def described_study(root: Path, described: dict[str, Any]) -> Study:
    path = write_description(root / "copy", described)
    for name in SECONDS:
        path.with_name(f"{name}.py").touch()
    return load_study(path)


def claim(**test: Any) -> dict[str, Any]:
    return {"id": "it", "says": "It is so.", "test": test}


def measure(
    results: Path,
    study: Study,
    seconds: Mapping[str, float] = SECONDS,
    *,
    sms: int = 16,
    noise: float = 1e-4,
    rounds: int = 8,
    run: str = NEW,
    machine: str = "box",
    then: Study | None = None,
) -> None:
    """Samples of the variants in `seconds`, `sms_used` among them; gpu_time and host_time alike.
    The run names the bounds of `then`, the study as it was; without one, none."""

    def time(variant: Variant, case: Case, metric: str) -> float:
        return seconds[variant.name]

    for name in seconds:
        variant = study.variant(name)
        samples = samples_of(study, variant, seconds=time, noise=noise, rounds=rounds, run=run)
        counts = [
            replace(sample, metric="sms_used", unit="1", value=float(sms))
            for sample in samples
            if sample.metric == "gpu_time"
        ]
        bounds = then.bounds_of(name) if then else {}
        add_samples(results, study, name, [*samples, *counts], run, machine, bounds=bounds)


def add_samples(
    results: Path,
    study: Study,
    name: str,
    samples: list[Sample],
    run: str,
    machine: str = "box",
    **noted: Any,
) -> None:
    """`noted` are optional fields of the provenance."""
    provenance = provenance_of(study, study.variant(name), run=run) | noted
    add_run(results, machine, study.name, name, samples, provenance)


COUNTED = "lts__t_requests.sum"


def count(
    results: Path,
    study: Study,
    at: str = NEW,
    status: str = CAPTURED,
    then: Study | None = None,
    **requests: float,
) -> None:
    """Profiles of variants, taken `at`, whose two kernels together make `requests`, each of
    four sectors; in another case, those of `fast` make ten times as many. The profiles name the
    bounds of `then`, as `measure` has it."""
    entries: dict[str, dict[str, Any]] = {}
    records: list[Counter] = []
    for name, made in requests.items():
        other = 10 if name == "fast" else 1
        kernels = [
            Counter(name, case, kernel, metric, "", times * value / 2)
            for case, times in (("rows=2", other), (CASE, 1))
            for kernel in ("first", "second")
            for metric, value in ((COUNTED, made), ("lts__t_sectors.sum", 4 * made))
        ]
        records += kernels if status == CAPTURED else []
        bounds = then.bounds_of(name, counted=True) if then else {}
        entries[name] = {"status": status, "case": CASE, "bounds": bounds}
    set_capture(results, "box", study, "counters", entries, records, at)


def publish(results: Path, text: str = PUBLISHED) -> None:
    (results / "published").mkdir(parents=True, exist_ok=True)
    (results / "published" / "copy.csv").write_text(text)


NO_MODEL = pd.DataFrame(columns=["machine", "study", "variant", "case", "metric", "predicted"])
NO_COUNTS = pd.DataFrame(columns=COUNT_COLUMNS)


def tables_of(results: Path, study: Study) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables of claims and of their parts."""
    studies = {study.name: study}
    found = collect(results, studies)
    counted = counts(found, studies)
    return claim_tables(found.samples, studies, found.published, NO_MODEL, counted)


def claims_of(results: Path, study: Study) -> list[dict[str, Any]]:
    table, _ = tables_of(results, study)
    assert list(table.columns) == columns(ClaimRow)
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def parts_of(results: Path, study: Study) -> list[ClaimPartRow]:
    return rows_of(tables_of(results, study)[1], ClaimPartRow)
