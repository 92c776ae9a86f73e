"""Every key of machine.json and of a provenance has its type and bounds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from analysis import ROOT
from analysis.base import keys
from analysis.base.errors import FieldError
from analysis.results.store.keys import Keys, MachineKeys, ProvenanceKeys, RunKeys
from analysis.results.store.provenance import read_provenance

KINDS: Final[dict[str, type[Keys]]] = {"machine.json": MachineKeys, "kernel.json": ProvenanceKeys}
DIGEST: Final = "0" * 64
CAPTURE: Final = {
    "status": "captured",
    "at": "2026-01-02T03:04:05Z",
    "case": "n=1",
    "source_sha256": DIGEST,
    "bounds": {"claim": "0" * 12},
}
ADDED: Final = {
    "captures": {"ncu": CAPTURE, "timeline": CAPTURE, "telemetry": CAPTURE},
    "disturbed": [{"round": 0, "why": ["heat"]}],
    "repeated": [{"round": 0, "why": ["heat"]}],
    "bounds": {"claim": "0" * 12},
    "unmet": "no RDMA device",
    "shared_with_processes": [1],
    "stages_s": {"start": 1.0, "prepare": 2.0, "check": 3.0, "timing": 4.0, "recorded": 1.0},
}
"""Keys that few committed runs have."""
ADDED_TO_MACHINE: Final = {
    "cpu_id": "GenuineIntel 6-143-8",
    "cpu_caches": {"L1_data_bytes": 2**15},
    "iommu": False,
}
KeyPath = tuple[str | int, ...]


def whole(name: str) -> dict[str, Any]:
    """A file with every key, from a measurement on several GPUs."""
    folder = ROOT / "results" / "nvidia-h200-x2"
    if name == "machine.json":
        described: dict[str, Any] = json.loads((folder / name).read_text())
        return described | ADDED_TO_MACHINE
    entries = [read_provenance(path) for path in sorted((folder / "peers").glob("*.json"))]
    found = max(entries, key=lambda entry: ("migrated" in entry, len(entry["runs"])))
    proof = {
        "revision": "0" * 40,
        "compared": "module",
        "digest": DIGEST,
        "apart_from": "bindings",
        "nvcc": "13.0",
        "cxx": "g++ 13",
        "arch": "sm_90",
    }
    migrated = [{"from": DIGEST, "to": DIGEST, "why": "renamed", "proof": proof}]
    looks = [look | {"core_hz": 3e9} for look in found["conditions"]]
    added = ADDED | {"migrated": migrated, "conditions": looks, "machine": whole("machine.json")}
    runs = [run | added for run in (found, *found["runs"])]
    return {**found, **runs[0], "runs": [without_file_keys(run) for run in runs[1:2]]}


def without_file_keys(run: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in run.items() if key in RunKeys.model_fields}


def places(data: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """The path of every key and of every item."""
    for part, value in data.items() if isinstance(data, dict) else enumerate(data):
        yield (*path, part)
        if isinstance(value, dict | list):
            yield from places(value, (*path, part))


def changed(data: dict[str, Any], path: KeyPath, value: object) -> dict[str, Any]:
    """A copy with another value at `path`."""
    copy = json.loads(json.dumps(data))
    inner = copy
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = value
    found: dict[str, Any] = copy
    return found


def at(data: Any, path: KeyPath) -> object:
    for part in path:
        data = data[part]
    return data


def wrong(value: object) -> list[object]:
    """Values of other types, and of the same type where no such key can have them."""
    if isinstance(value, bool):
        return ["yes", 1, [], {}]
    if isinstance(value, int | float):
        return ["1", [], {}, True, -1, 10**19, float("nan"), float("inf")]
    if isinstance(value, str):
        return [1, 1.5, True, [], {}, "x" * 20_000]
    if value is None:
        return ["x", True, [], {}]
    return [1, "x", True, {"a": {}} if isinstance(value, list) else [[]]]


def refusal(name: str, data: object) -> str:
    """The error about a file with this content; empty if it is accepted."""
    try:
        keys.read(KINDS[name], data, name)
    except FieldError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", KINDS)
def test_a_wrong_value_of_every_key_is_refused_by_name(name: str) -> None:
    data = whole(name)
    keys.read(KINDS[name], data, name)
    count = 0
    for path in places(data):
        for value in wrong(at(data, path)):
            count += 1
            assert refusal(name, changed(data, path, value)).startswith(f"{name}: {path[0]}"), (
                path,
                value,
            )
    assert count > (100 if name == "machine.json" else 1000)


@pytest.mark.parametrize("name", KINDS)
def test_an_unknown_key_is_refused_at_every_depth(name: str) -> None:
    data = whole(name)
    for path in [(), *places(data)]:
        inner = at(data, path)
        open_keys = {
            "libraries",
            "cpu_caches",
            "bounds",
            "captures",
            "peer_access",
            "nvlinks",
            "pcie_path",
        }
        if isinstance(inner, dict) and not open_keys & {str(part) for part in path[-1:]}:
            added = changed(data, (*path, "colour"), "green")
            assert "colour: expected no such key" in refusal(name, added), path


def fields(record: type[Keys]) -> set[str]:
    return {one.alias or name for name, one in record.model_fields.items()}


def test_the_file_of_the_test_has_every_key() -> None:
    assert set(whole("machine.json")) == fields(MachineKeys)
    found = whole("kernel.json")
    assert set(found) == fields(ProvenanceKeys)
    assert set(found["machine"]) == fields(MachineKeys)
