"""`<variant>.json`: the newest run of a variant whole, and of each earlier run what differs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from analysis.base import keys
from analysis.base.errors import HotpathError
from analysis.base.schema import read_json
from analysis.results.store.keys import ProvenanceKeys

Provenance = dict[str, Any]
"""One run of one variant: commit, dirty, source_sha256, method_version, compiler, versions,
command, start, end, energy_j, captures, bounds, machine ... `runs` holds the earlier runs that are
kept."""

OF_FILE: Final = ("study", "variant", "samples_sha256", "runs")
"""Keys of the file, beside those of the newest run."""

WITHOUT: Final = "-"
"""In the entry of an earlier run, the keys of the newest run that it lacks. An entry that has this
list holds what differs from the newest run; one without it, in older files, is whole."""


class CorruptResults(HotpathError):
    """Samples that do not match their provenance."""


def read_provenance(path: Path) -> Provenance:
    """The provenance with all earlier runs whole, its keys checked; HotpathError names the file and
    the key."""
    if not path.exists():
        raise CorruptResults(f"{path}: the provenance of {path.stem}.csv is missing")
    provenance: Provenance = read_json(path)
    provenance = _with_whole_runs(path, provenance)
    keys.read(ProvenanceKeys, provenance, str(path))
    entries = (provenance, *provenance["runs"])
    if len({entry["run"] for entry in entries}) < len(entries):
        raise CorruptResults(f"{path}: runs: expected every run once")
    return provenance


def provenance_text(document: Provenance) -> str:
    """The whole file: a line a key, and below `runs` a line a run."""
    newest = of_run(document)
    changes = [{WITHOUT: []} | _difference(newest, of_run(entry)) for entry in document["runs"]]
    runs = ",\n".join(f"  {json.dumps(entry, sort_keys=True)}" for entry in changes)
    values = {key: json.dumps(value, sort_keys=True) for key, value in document.items()}
    values["runs"] = f"[\n{runs}\n ]" if runs else "[]"
    lines = ",\n".join(f" {json.dumps(key)}: {value}" for key, value in sorted(values.items()))
    return f"{{\n{lines}\n}}\n"


def of_run(document: Provenance) -> Provenance:
    """The keys of a run, without those of the file."""
    return {key: value for key, value in document.items() if key not in OF_FILE}


def _with_whole_runs(path: Path, document: Provenance) -> Provenance:
    """With every earlier run whole. What is no list of objects is left to the check of the keys."""
    entries = document.get("runs") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        return document
    newest = of_run(document)
    runs = [
        _applied(newest, entry, f"{path}: runs.{at}")
        if isinstance(entry, dict) and WITHOUT in entry
        else entry
        for at, entry in enumerate(entries)
    ]
    return document | {"runs": runs}


def _difference(newest: Mapping[str, Any], run: Mapping[str, Any]) -> dict[str, Any]:
    """What of `run` differs from `newest`, in objects within them, too."""
    found: dict[str, Any] = {}
    for key, value in run.items():
        before = newest.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            if within := _difference(before, value):
                found[key] = within
        elif key not in newest or json.dumps(before) != json.dumps(value):
            found[key] = value
    if missing := sorted(newest.keys() - run.keys()):
        found[WITHOUT] = missing
    return found


def _applied(newest: Mapping[str, Any], change: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The run of which `_difference` is `change`; HotpathError if it lacks what is not there."""
    missing = change.get(WITHOUT, [])
    if not _are_keys(missing, newest):
        raise CorruptResults(f"{where}.{WITHOUT}: expected keys of the newest run, got {missing!r}")
    run = {key: value for key, value in newest.items() if key not in missing}
    for key, value in change.items():
        if key == WITHOUT:
            continue
        before = run.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            run[key] = _applied(before, value, f"{where}.{key}")
        else:
            run[key] = value
    return run


def _are_keys(names: object, of: Iterable[str]) -> bool:
    return isinstance(names, list) and set(map(str, names)) <= set(of)
