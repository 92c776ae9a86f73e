"""Convert results of a file per variant into run files, which are stale: samples, host and commit.

    python -m analysis.results.convert results

Hashes and method versions stay those of the old files, which are removed. Only runs that are the
newest of a variant and case are kept: of stale figures, pages show no other.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from analysis.base.cli import existing_folder, fail_in_one_line, program
from analysis.base.records import to_text as csv_text
from analysis.results.store.folders import NAME, PUBLISHED, listed
from analysis.results.store.keys import (
    FORMAT,
    UNKNOWN_HOST,
    CapturedVariant,
    CaptureFile,
    Compiler,
    GpuKeys,
    HostKeys,
    RunFile,
    VariantKeys,
    name_of_run,
    without_private,
)
from analysis.results.store.runs import add
from analysis.results.store.samples import Row, to_text

Entry = Mapping[str, Any]
KINDS: Final = {"ncu": "counters", "timeline": "timeline"}


def convert(root: Path) -> Iterator[str]:
    """Convert every machine under `root`; a line for each study."""
    for machine in listed(root):
        if not machine.is_dir() or machine.name == PUBLISHED:
            continue
        for folder in listed(machine):
            if folder.is_dir():
                yield from _convert_study(machine.name, folder)
        (machine / "machine.json").unlink(missing_ok=True)


def _convert_study(machine: str, folder: Path) -> Iterator[str]:
    old = [path for path in listed(folder) if NAME.fullmatch(path.name.partition(".")[0])]
    newest = {path.stem: json.loads(path.read_text()) for path in old if path.suffix == ".json"}
    entries: dict[str, dict[str, Entry]] = defaultdict(dict)
    rows: dict[str, list[Row]] = defaultdict(list)
    for variant, document in newest.items():
        for entry in (document, *(_whole(document, change) for change in document["runs"])):
            name = name_of_run(entry["run"], _host(entry["machine"]).id)
            entries[name][variant] = entry
        names = {entry["run"]: name for name, e in entries.items() for entry in e.values()}
        with (folder / f"{variant}.csv").open(newline="") as file:
            for row in csv.DictReader(file):
                rows[names[row["run"]]].append(_row(variant, row))
    of_cell = {row.cell: name for name in sorted(rows) for row in rows[name]}
    for name in sorted(set(of_cell.values())):
        _write_run(machine, folder, name, entries[name], rows[name])
    for kind, suffix in KINDS.items():
        _write_captures(machine, folder, kind, suffix, newest)
    for path in old:
        path.unlink()
    yield f"{machine}/{folder.name}: {len(set(of_cell.values()))} of {len(entries)} runs"


def _whole(newest: Any, change: Any) -> Any:
    """An earlier run, of which the file has what differs from the newest; see `-` in it."""
    if "-" not in change:
        return change
    whole = {key: value for key, value in newest.items() if key not in (*change["-"], "runs")}
    for key, value in change.items():
        before = whole.get(key)
        nested = isinstance(value, dict) and isinstance(before, dict)
        whole[key] = _whole(before, {"-": [], **value}) if nested else value
    whole.pop("-", None)
    return whole


def _host(machine: Entry) -> HostKeys:
    known = {key: value for key, value in machine.items() if value is not None}
    gpu = {key: value for key, value in known.items() if key in GpuKeys.model_fields}
    host = {key: known[key] for key in HostKeys.model_fields if key in known and key != "gpus"}
    host["libraries"] = {k: v for k, v in known.get("libraries", {}).items() if v is not None}
    nodes = known.get("gpu_numa_nodes", [None])
    gpus = [gpu | ({"gpu_numa_node": node} if node is not None else {}) for node in nodes]
    name = known.get("host", UNKNOWN_HOST)[: len(UNKNOWN_HOST)]
    return HostKeys.model_validate({**host, "id": name, "gpus": gpus if gpu else []})


def _row(variant: str, row: Mapping[str, str]) -> Row:
    columns = {name: re.fullmatch(r"(\w+) \[(.+)\]", name) for name in row}
    return Row(
        variant=variant,
        case=row["case"],
        round=int(row["round"]),
        values={
            (match[1], match[2]): [float(value) for value in row[name].split()]
            for name, match in columns.items()
            if match and row[name]
        },
        verified=int(row["verified"]),
        status=row["status"],
        reason=without_private(row["reason"]),
        throttle=row["throttle"],
        sm_mhz=float(row["sm_mhz"]) if row["sm_mhz"] else None,
        started_at=row["started_at"],
    )


def _write_run(
    machine: str, folder: Path, name: str, entries: Mapping[str, Entry], rows: list[Row]
) -> None:
    first = next(iter(entries.values()))
    about = RunFile(
        format=FORMAT,
        method_version=first["method_version"],
        machine=machine,
        study=folder.name,
        run=name,
        grid=first.get("grid", "default"),
        rounds=max(entry["rounds"] for entry in entries.values()),
        asked=[],
        start=min(entry["start"] for entry in entries.values()),
        end=max(entry["end"] for entry in entries.values()),
        commit=first["commit"],
        dirty=first.get("dirty"),
        command="",
        files={},
        host=_host(first["machine"]),
        telemetry={},
        compiler=Compiler(),
        variants={
            variant: VariantKeys(source_sha256=entry["source_sha256"], unmet=entry.get("unmet"))
            for variant, entry in sorted(entries.items())
        },
        bounds={},
        conditions=[],
        disturbed=[],
        repeated=[],
        stages_s=None,
        energy_j=None,
        discarded_host_passes=first.get("discarded_host_passes", 0),
        other_processes=[],
    )
    add(folder, about, {f"{name}.csv": to_text(rows)})


def _write_captures(
    machine: str, folder: Path, kind: str, suffix: str, newest: Mapping[str, Entry]
) -> None:
    taken = {v: entry["captures"][kind] for v, entry in newest.items() if kind in _captures(entry)}
    if not taken:
        return
    latest = max(newest.values(), key=lambda entry: str(entry["run"]))
    about = CaptureFile.model_validate(
        {
            "format": FORMAT,
            "kind": suffix,
            "machine": machine,
            "study": folder.name,
            "at": max(entry["at"] for entry in taken.values()),
            "commit": None,
            "dirty": None,
            "files": {},
            "host": _host(latest["machine"]),
            "compiler": Compiler(),
            "variants": {
                variant: CapturedVariant(
                    case=entry["case"],
                    source_sha256=entry["source_sha256"],
                    status=without_private(entry["status"]),
                )
                for variant, entry in sorted(taken.items())
            },
        }
    )
    header: list[str] = []
    lines: list[list[str]] = []
    for variant in taken:
        if (path := folder / f"{variant}.{kind}.csv").exists():
            with path.open(newline="") as file:
                header, *rows = csv.reader(file)
                lines += [[variant, *row] for row in rows]
    texts = {f"{about.stem}.csv": csv_text(["variant", *header], lines)} if lines else {}
    add(folder, about, texts)


def _captures(entry: Entry) -> Mapping[str, Any]:
    return {k: v for k, v in entry.get("captures", {}).items() if v.get("source_sha256")}


def command_line() -> argparse.ArgumentParser:
    parser = program("analysis.results.convert", __doc__)
    parser.add_argument("results", type=existing_folder)
    return parser


def main() -> None:
    for line in convert(command_line().parse_args().results):
        print(line)


if __name__ == "__main__":
    fail_in_one_line(main)
