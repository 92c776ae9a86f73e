"""A made-up repository and made-up results in the real format.

The folder `root` holds its studies, their pages and what was published of them.
"""

import hashlib
import random
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from analysis.base.records import read_records, records_text
from analysis.results.store import METHOD_VERSION
from analysis.results.store.keys import (
    FORMAT,
    CaptureFile,
    Compiler,
    GpuKeys,
    HostKeys,
    RunFile,
    VariantKeys,
    name_of_run,
    start_of,
)
from analysis.results.store.records import CAPTURED
from analysis.results.store.runs import add, described, read_runs
from analysis.results.store.samples import Metric, Row, to_text
from analysis.site.facts.inputs import MeasuredRow
from analysis.study import Case, Study, Variant, discover
from analysis.study.keys import CaptureKind
from analysis.study.source import fingerprint
from tests.editing import edit_json

ROOT = Path(__file__).parent / "root"
STUDIES = discover(ROOT)
COPY = STUDIES["copy"]
"""Steps from slow to fast, others, and ceilings; over cases of three keys."""
CALLS = STUDIES["calls"]
"""Variants that any machine can run, one of them listed again, and a kernel."""
RUN = "2026-01-02T03:04:05Z"
"""Start of a made-up run."""
MAX_ROUNDS = 64
"""Maximum number of rounds of a made-up run."""
NOTHING: Final[Mapping[Metric, Sequence[float | None]]] = {("", ""): [None]}
Seconds = Callable[[Variant, Case, str], float]


def description(
    title: str,
    metrics: Mapping[str, tuple[str, str]],
    cases: Mapping[str, Mapping[str, Any]],
    variants: Iterable[Mapping[str, Any]],
    **more: Any,
) -> dict[str, Any]:
    """Content of a small study.yaml; `metrics` are (unit, label) by name."""
    usual = {"role": "step", "title": title}
    return {"title": title, "question": "How fast?", "budget_s": 1} | {
        "metrics": {n: {"unit": unit, "label": label} for n, (unit, label) in metrics.items()},
        "cases": {name: dict(keys) for name, keys in cases.items()},
        "variants": [{**usual, "cases": [next(iter(cases))], **variant} for variant in variants],
        **more,
    }


def write_description(folder: Path, study: Mapping[str, Any]) -> Path:
    """study.yaml in `folder`, which is made where it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "study.yaml"
    path.write_text(yaml.dump(dict(study), Dumper=yaml.CSafeDumper, sort_keys=False))
    return path


def plausible(variant: Variant, case: Case, metric: str) -> float:
    """Seconds: a launch cost and a rate that differ by variant, reproducibly."""
    rate = 1e9 * (2 + zlib.crc32(variant.name.encode()) % 50)
    return (3e-6 if metric == "gpu_time" else 8e-6) + case.payload_bytes / rate


def at_rates(rates: Mapping[str, float], other: float = 9.0) -> Seconds:
    """Times at these payload rates in GB/s by variant, and at `other` of all other variants."""
    return lambda variant, case, _: case.payload_bytes / 1e9 / rates.get(variant.name, other)


@dataclass(frozen=True)
class Sample:
    """One sample. `run` is the UTC timestamp of its run's start."""

    study: str
    variant: str
    case: str
    metric: str
    unit: str
    value: float | None
    run: str
    round: int
    sample: int = 0
    verified: int = 1
    status: str = "ok"
    reason: str = ""
    throttle: str = ""
    sm_mhz: float | None = 1980.0
    started_at: str = RUN


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
    draw = random.Random(f"{run}{variant.name}").lognormvariate
    return [
        Sample(
            *(study.name, variant.name, case.id, metric, "s"),
            *(seconds(variant, case, metric) * draw(0, noise), run, number),
            started_at=run,
        )
        for number in range(rounds)
        for case in variant.in_grid(grid)
        for metric in study.time_metrics
    ]


OF_ROWS = ("verified", "status", "reason", "throttle", "sm_mhz", "started_at")
"""Fields of a row that are those of its samples."""


def rows_of(samples: Iterable[Sample]) -> list[Row]:
    """The rows of a run's file with these samples."""
    cells: dict[tuple[str, str, int], list[Sample]] = {}
    for sample in samples:
        cells.setdefault((sample.variant, sample.case, sample.round), []).append(sample)
    rows = []
    for cell, of_cell in cells.items():
        values: dict[Metric, list[float]] = {}
        for one in of_cell:
            if one.value is not None:
                values.setdefault((one.metric, one.unit), []).append(one.value)
        about = [getattr(of_cell[0], name) for name in OF_ROWS]
        rows.append(Row(*cell, values, *about))
    return rows


def samples_in(path: Path, variant: str = "") -> list[Sample]:
    """The samples in a run's file, of one variant or of all."""
    run = start_of(path.name.partition(".")[0])
    return [
        Sample(
            *(path.parent.name, row.variant, row.case, metric, unit, value, run, row.round, number),
            *(getattr(row, name) for name in OF_ROWS),
        )
        for row in read_records(path, Row)
        if variant in ("", row.variant)
        for (metric, unit), values in (row.values or NOTHING).items()
        for number, value in enumerate(values)
    ]


def host_id_of(run: str) -> str:
    """The host of a run, if the run names no other: each has one to itself."""
    return hashlib.sha256(run.encode()).hexdigest()[:8]


def name_of(run: str, host: str = "") -> str:
    """The name of a run that starts at this timestamp."""
    return name_of_run(run, host or host_id_of(run))


def files_of(root: Path, machine: str, study: str) -> list[Path]:
    """The samples files of a study on a machine, oldest first."""
    folder = root / machine / study
    return sorted(path.with_suffix(".csv") for path in described(folder))


def write_machine(
    root: Path,
    machine: str,
    study: Study,
    *,
    variants: Iterable[Variant] | None = None,
    run: str = RUN,
    **of_samples: Any,
) -> None:
    """Results of `variants` (all of the study's) on one machine; `of_samples` are arguments of
    `samples_of`."""
    made = study.variants if variants is None else variants
    samples = [one for each in made for one in samples_of(study, each, run=run, **of_samples)]
    if samples:
        write_run(root, machine, study, samples)


def write_run(
    root: Path,
    machine: str,
    study: Study,
    samples: Sequence[Sample],
    codes: Mapping[str, str] | None = None,
    host: Mapping[str, Any] | None = None,
    **about: Any,
) -> None:
    """Write the run of these samples, with what its file had of other variants. Variants that
    `codes` lacks have the hash of now; `host` are more facts of the host, `about` other keys."""
    folder, run = root / machine / study.name, samples[0].run
    facts = {"gpu": "Synthetic GPU", "cpu": "Synthetic CPU", "sms": 132}
    keys = host_of({**facts, **(host or {})}, run)
    name, rows, known = name_of_run(run, keys.id), rows_of(samples), {}
    for variant in dict.fromkeys(sample.variant for sample in samples):
        code = (codes or {}).get(variant) or fingerprint(study, study.variant(variant))
        known[variant] = VariantKeys(source_sha256=code)
    bounds = about.pop("bounds", {})
    if (folder / f"{name}.json").exists():
        old = next(one for one in read_runs(folder, None) if one.about.run == name)
        rows = [*(row for row in old.rows if row.variant not in known), *rows]
        known, bounds = {**old.about.variants, **known}, {**old.about.bounds, **bounds}
    usual: dict[str, Any] = {"format": FORMAT, "grid": "default", "discarded_host_passes": 1}
    usual |= {"asked": [], "other_processes": [], "conditions": [], "disturbed": []}
    usual |= {"repeated": [], "telemetry": {}, "stages_s": None, "energy_j": None}
    usual |= {"method_version": METHOD_VERSION, "command": "made up", "rounds": MAX_ROUNDS}
    usual |= {"start": run, "end": run, "commit": "0" * 40, "dirty": False, "files": {}}
    usual |= {"machine": machine, "study": study.name, "run": name, "compiler": Compiler()}
    usual |= {"host": keys, "variants": known, "bounds": bounds}
    add(folder, RunFile.model_validate(usual | about), {f"{name}.csv": to_text(rows)})


def host_of(machine: Mapping[str, Any], run: str = RUN) -> HostKeys:
    """The host with these facts, of which those of a GPU are of its `gpus` GPUs."""
    gpu = {key: value for key, value in machine.items() if key in GpuKeys.model_fields}
    own = {key: machine[key] for key in HostKeys.model_fields.keys() & machine.keys() - {"gpus"}}
    count = machine.get("gpus", 1) if gpu.get("gpu") else 0
    host = machine.get("host", host_id_of(run))
    return HostKeys.model_validate({**own, "id": host, "gpus": [gpu] * count})


def make_stale(samples: Path, *variants: str) -> None:
    """Have a run's file name other code for these variants, by default all."""

    def change(content: dict[str, Any]) -> None:
        for name in variants or content["variants"]:
            content["variants"][name]["source_sha256"] = "0" * 64

    edit_json(samples.with_suffix(".json"), change)


def set_capture(
    root: Path,
    machine: str,
    study: Study,
    kind: CaptureKind,
    variants: Mapping[str, Mapping[str, Any]],
    records: Sequence[Any] = (),
    at: str = RUN,
) -> Path:
    """Write a capture of these variants, with what differs from a fresh one, and its records; the
    path of its description."""
    usual = {"case": study.headline, "status": CAPTURED}
    of_variants = {
        name: {**usual, "source_sha256": fingerprint(study, study.variant(name)), **changes}
        for name, changes in variants.items()
    }
    content: dict[str, Any] = {"format": FORMAT, "kind": kind, "at": at, "machine": machine}
    content |= {"study": study.name, "files": {}, "compiler": Compiler()}
    content |= {
        "commit": None,
        "dirty": None,
        "host": host_of({"gpu": "Synthetic GPU"}),
        "variants": of_variants,
    }
    about = CaptureFile.model_validate(content)
    text = records_text(type(records[0]), records, ".9f") if records else ""
    files = {about.file_name.replace(".json", ".csv"): text} if text else {}
    return add(root / machine / study.name, about, files)


def measured_row(study: Study, variant: str, case: str, metric: str, value: float) -> MeasuredRow:
    """A row of summary.csv: a machine called box has measured this median, in eight rounds."""
    basis: dict[str, Any] = {"runs": 1, "hosts": 1, "by_run": "", "apart": 0, "disturbed": 0}
    return MeasuredRow(
        *("box", study.name, variant, case, metric, study.metrics[metric].unit),
        *(value, value, value, value, value),
        *(8, 8, 1, 0.0, 0),
        run=RUN,
        **basis,
    )


def assert_measured_once(folder: Path, variants: Iterable[str], rounds: int) -> None:
    """Check that a study's folder has one run, in which every sample of `variants` was taken once,
    and that all others were skipped."""
    (rows,) = (run.rows for run in read_runs(folder, None))
    assert {row.variant for row in rows if row.status != "skipped"} == {*variants}
    measured = [row for row in rows if row.variant in variants]
    assert {row.round for row in measured} == set(range(rounds))
    assert {row.status for row in measured} == {"ok"}
