"""The results folder of one machine: samples with their provenance, kept small and consistent.

<root>/<machine>/machine.json
<root>/<machine>/<study>/<variant>.csv, .json, .telemetry.csv ...
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.errors import HotpathError
from analysis.store import METHOD_VERSION
from analysis.store.samples import (
    KEPT_RUNS,
    MACHINE_LIMIT_BYTES,
    Sample,
    checksum,
    read_samples,
    write_samples,
)

PUBLISHED = "published"

Provenance = dict[str, Any]
"""One run of one variant: commit, dirty, source_sha256, method_version, compiler, versions,
command, start, end, energy_j, captures, machine ... `runs` holds the earlier runs that are kept."""


REQUIRED = ("run", "commit", "source_sha256", "method_version", "start", "end", "machine")


class CorruptResults(HotpathError):
    """Samples that do not match their provenance."""


@dataclass(frozen=True)
class VariantResults:
    """Samples of one variant on one machine, and the provenance of each of their runs."""

    machine: str
    study: str
    variant: str
    samples: list[Sample]
    provenance: Provenance

    def run_provenance(self) -> dict[str, Provenance]:
        """Provenance by run."""
        return {entry["run"]: entry for entry in (self.provenance, *self.provenance["runs"])}

    def fresh_runs(self, source_sha256: str) -> list[str]:
        """Runs measured from this source with the current method, newest first."""
        return sorted(
            (
                run
                for run, entry in self.run_provenance().items()
                if entry["source_sha256"] == source_sha256
                and entry["method_version"] == METHOD_VERSION
            ),
            reverse=True,
        )


def machines(root: Path) -> list[str]:
    """Folders under `root` with a machine's description or samples, in alphabetical order."""
    return sorted(
        folder.name
        for folder in root.glob("*")
        if folder.name != PUBLISHED
        and ((folder / "machine.json").exists() or any(folder.glob("*/*.csv")))
    )


def variant_files(root: Path, machine: str) -> Iterator[Path]:
    """Every samples file of a machine."""
    for path in sorted((root / machine).glob("*/*.csv")):
        if "." not in path.stem:
            yield path


def load_variant(path: Path) -> VariantResults:
    """Read `<variant>.csv` and its provenance.

    Raises MalformedSamples or CorruptResults, naming the file.
    """
    provenance_path = path.with_suffix(".json")
    try:
        provenance = json.loads(provenance_path.read_text())
        expected = provenance["samples_sha256"]
        for run in (provenance, *provenance["runs"]):
            _ = [run[key] for key in REQUIRED]
    except OSError as error:
        raise CorruptResults(f"{path}: its provenance {provenance_path.name} is missing") from error
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptResults(f"{provenance_path}: not a provenance file: {error!r}") from error
    samples = read_samples(path)
    if checksum(path) != expected:
        raise CorruptResults(f"{path}: checksum differs from the one in {provenance_path.name}")
    machine, study = path.parts[-3:-1]
    return VariantResults(machine, study, path.stem, samples, provenance)


def add_run(
    root: Path,
    machine: str,
    study: str,
    variant: str,
    samples: Sequence[Sample],
    provenance: Provenance,
) -> None:
    """Put the samples of one run before those of earlier runs of this variant with the same method
    version. Only the newest KEPT_RUNS runs are kept."""
    path = root / machine / study / f"{variant}.csv"
    earlier: list[Sample] = []
    runs: dict[str, Provenance] = {}
    if path.exists():
        old = load_variant(path)
        earlier, runs = old.samples, old.run_provenance()
    runs = {run: entry for run, entry in runs.items() if run != provenance["run"]}
    method = provenance["method_version"]
    alike = [run for run, entry in runs.items() if entry["method_version"] == method]
    kept = sorted(alike, reverse=True)[: KEPT_RUNS - 1]
    _write(path, [*samples, *(s for s in earlier if s.run in kept)], provenance, runs, kept)


def _write(
    path: Path,
    samples: Sequence[Sample],
    provenance: Provenance,
    runs: Mapping[str, Provenance],
    kept: Sequence[str],
) -> None:
    write_samples(path, samples)
    current = {k: v for k, v in provenance.items() if k not in ("runs", "samples_sha256")}
    if runs:  # captures outlive a run: each entry records the source it was taken from
        newest = runs[max(runs)]
        current["captures"] = {**newest.get("captures", {}), **current.get("captures", {})}
    earlier = [
        {k: v for k, v in runs[run].items() if k not in ("runs", "samples_sha256")} for run in kept
    ]
    document = {**current, "samples_sha256": checksum(path), "runs": earlier}
    path.with_suffix(".json").write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")


def set_capture(
    root: Path, machine: str, study: str, variant: str, kind: str, entry: Mapping[str, str]
) -> None:
    """Record the outcome of a capture of this variant in its provenance.

    HotpathError if the variant has not been measured on this machine.
    """
    path = root / machine / study / f"{variant}.json"
    if not path.exists():
        raise HotpathError(f"{path}: missing; measure the variant before capturing it")
    provenance = json.loads(path.read_text())
    provenance["captures"] = {**provenance.get("captures", {}), kind: dict(entry)}
    path.write_text(json.dumps(provenance, indent=1, sort_keys=True) + "\n")


def shrink(root: Path, machine: str, limit: int = MACHINE_LIMIT_BYTES) -> None:
    """Drop extra runs of the machine until its folder is within `limit` bytes.

    Runs of other code than the newest are dropped first, then runs that no other variant has as its
    newest, then the oldest.
    """
    folder = root / machine
    while sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) > limit:
        held = [(path, load_variant(path)) for path in variant_files(root, machine)]
        newest = {(one.study, one.provenance["run"]) for _, one in held}
        extras = [
            (
                run["source_sha256"] == one.provenance["source_sha256"],
                (one.study, run["run"]) in newest,
                run["run"],
                path,
            )
            for path, one in held
            for run in one.provenance["runs"]
        ]
        if not extras:
            raise HotpathError(f"{folder}: more than {limit} bytes with one run of each variant")
        *_, dropped, path = min(extras)
        loaded = dict(held)[path]
        runs = loaded.run_provenance()
        kept = sorted(set(runs) - {dropped, loaded.provenance["run"]}, reverse=True)
        remaining = [sample for sample in loaded.samples if sample.run != dropped]
        _write(path, remaining, loaded.provenance, runs, kept)
