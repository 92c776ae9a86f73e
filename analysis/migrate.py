"""Carry committed results over a new way of hashing the code they belong to.

    python -m analysis.migrate results

A run is carried over only where the hash it was published with is still that of the code here,
made in the old way: whatever was stale stays stale. Provenance keeps both hashes, and why.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from analysis import ROOT
from analysis.cli import existing_folder, fail_in_one_line
from analysis.files import write_whole
from analysis.source import fingerprint
from analysis.store.folders import machines, variant_files
from analysis.store.results import load_variant, provenance_text
from analysis.study import Study, Variant, discover


@dataclass(frozen=True)
class Migration:
    """A change of hashing: how a variant was hashed before, and why no more."""

    old: Callable[[Study, Variant], str]
    why: str


def _without_lists(study: Study, variant: Variant) -> str:
    """As before study.yaml could say what else is timed and what only tests."""
    return fingerprint(replace(study, tests=()), replace(variant, timed=()))


MIGRATIONS: Final = (
    Migration(
        _without_lists,
        "files outside of the study that are timed are hashed, those that only test are not",
    ),
)
"""From the oldest on."""


def migrate(results: Path, studies: Mapping[str, Study]) -> Counter[str]:
    """Write today's hash into the provenance of all runs under `results` that a migration carries
    over; returns how many runs were `carried over` and how many are `stale`, and stay so."""
    counts: Counter[str] = Counter()
    files = [path for machine in machines(results) for path in variant_files(results, machine)]
    for path in files:
        loaded = load_variant(path)
        study = studies.get(loaded.study)
        if study is None or loaded.variant not in study.variant_names:
            counts["stale"] += len(loaded.run_provenance())
            continue
        carried = _carried(loaded.provenance, study, study.variant(loaded.variant), counts)
        if carried != loaded.provenance:
            write_whole(path.with_suffix(".json"), provenance_text(carried))
    return counts


def _carried(
    provenance: Mapping[str, Any], study: Study, variant: Variant, counts: Counter[str]
) -> dict[str, Any]:
    """`provenance` with today's hash in its runs and captures that have one of the old ways."""
    today = fingerprint(study, variant)
    why = {migration.old(study, variant): migration.why for migration in MIGRATIONS}
    why.pop(today, None)

    def carry(entry: Mapping[str, Any]) -> dict[str, Any]:
        old = entry.get("source_sha256")
        if old not in why:
            counts.update(["stale"] if old != today else [])
            return dict(entry)
        counts["carried over"] += 1
        note = {"from": old, "to": today, "why": why[old]}
        return {
            **entry,
            "source_sha256": today,
            "migrated": [*entry.get("migrated", []), note],
            "captures": {
                kind: capture | {"source_sha256": today}
                if capture.get("source_sha256") in why
                else capture
                for kind, capture in entry.get("captures", {}).items()
            },
        }

    return carry(provenance) | {"runs": [carry(run) for run in provenance["runs"]]}


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m analysis.migrate",
        description="Carry results over a new way of hashing the code they belong to.",
    )
    parser.add_argument(
        "results",
        type=existing_folder,
        nargs="?",
        default=ROOT / "results",
        help="folder of the machines",
    )
    return parser


def main() -> None:
    counts = migrate(command_line().parse_args().results, discover())
    print(f"{counts['carried over']} runs carried over, {counts['stale']} stale as before")


if __name__ == "__main__":
    fail_in_one_line(main)
