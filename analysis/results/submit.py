"""Make a submission: the figures of a machine in one file of at most 200 KB.

python -m analysis.results.submit nvidia-h200 --name my-h200
python -m analysis.results.submit --check results/submitted/my-h200.json
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pandas as pd

from analysis import ROOT
from analysis.base import keys
from analysis.base.cli import existing_file, existing_folder, fail_in_one_line, program
from analysis.base.errors import FieldError, HotpathError, require_known, visible
from analysis.base.files import write_whole
from analysis.base.schema import read_json
from analysis.results.store import METHOD_VERSION
from analysis.results.store.collect import Collected, chosen, collect, fresh
from analysis.results.store.folders import machines
from analysis.results.store.submission import (
    FORMAT,
    KERNEL,
    SUBMISSION_LIMIT_BYTES,
    ReachKeys,
    SentMachine,
    is_anonymous,
)
from analysis.results.store.submitted import (
    checked,
    code_digest,
    content_digest,
    read_submission,
)
from analysis.results.tables.links import fit_links
from analysis.results.tables.model import parameter_table
from analysis.results.tables.rows import RUN_SEPARATOR, ParameterRow, SummaryRow, rows_of
from analysis.results.tables.summary import summarise
from analysis.study import Study, discover
from analysis.study.source import fingerprint

COMPACT: Final = (",", ":")
FOLDER: Final = ROOT / "build" / "submission"


def submission(
    found: Collected, studies: Mapping[str, Study], machine: str, name: str
) -> dict[str, Any]:
    """The content of a submission called `name`, from fresh samples of `machine`, undigested."""
    samples = fresh(chosen(found.samples[found.samples["machine"] == machine]))
    if samples.empty:
        raise FieldError(machine, "results of today's code", None)
    entries = _entries(found, machine, set(samples["run"]))
    newest = max(entries.values(), key=lambda entry: str(entry["run"]))
    fits = fit_links(samples, {machine: newest["machine"]}, studies)
    figures = _figures(rows_of(summarise(samples), SummaryRow), studies)
    return {
        "format": FORMAT,
        "name": name,
        "measured": newest["end"],
        "method_version": METHOD_VERSION,
        "code": {
            "commit": newest["commit"],
            "dirty": newest["dirty"],
            "sha256": code_digest(figures),
        },
        "machine": _anonymous(newest["machine"]),
        "runs": _runs(samples),
        "studies": figures,
        "parameters": {
            row.parameter: {
                "unit": row.unit,
                "value": _number(row.value),
                **_ends(row.ci_low, row.ci_high),
                "runs": row.runs,
            }
            for row in rows_of(parameter_table(fits), ParameterRow)
            if not math.isnan(row.value)
        },
    }


def reach_submission(reach: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The content of a submission that has only the output of tools/reach.cu."""
    keys.read(ReachKeys, reach, "reach")
    return {
        "format": FORMAT,
        "name": name,
        "measured": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "method_version": METHOD_VERSION,
        "code": {"commit": None, "dirty": None, "sha256": code_digest({})},
        "machine": {"gpu": reach["gpu"], "arch": f"sm_{reach['sm']}"},
        "runs": [],
        "studies": {},
        "parameters": {},
    }


def with_reach(content: Mapping[str, Any], reach: Mapping[str, Any] | None) -> dict[str, Any]:
    """`content` with the output of tools/reach.cu, if there is any, and its digest."""
    whole = {**content, **({"reach": dict(reach)} if reach else {})}
    return whole | {"sha256": content_digest(whole)}


def _entries(found: Collected, machine: str, runs: set[str]) -> dict[str, Mapping[str, Any]]:
    """An entry of the provenance for each of `runs`, by run."""
    return {
        entry["run"]: entry
        for (where, _, _), newest in found.provenance.items()
        if where == machine
        for entry in (newest, *newest["runs"])
        if entry["run"] in runs
    }


def _figures(rows: Iterable[SummaryRow], studies: Mapping[str, Study]) -> dict[str, dict[str, Any]]:
    """Every metric of each variant in the case that its page shows, by study and variant."""
    figures: dict[str, dict[str, Any]] = {}
    for row in rows:
        variant = studies[row.study].variant(row.variant)
        case = studies[row.study].shown_case(variant)
        if row.case != case.id or not row.verified:
            continue
        sent = figures.setdefault(row.study, {}).setdefault(
            row.variant,
            {
                "source_sha256": fingerprint(studies[row.study], variant),
                "case": row.case,
                "payload_bytes": case.payload_bytes,
                "figures": {},
            },
        )
        sent["figures"][row.metric] = {
            "unit": row.unit,
            "median": _number(row.median),
            **_ends(row.any_low, row.any_high),
            "by_run": [_number(float(one)) for one in row.by_run.split(RUN_SEPARATOR)],
            "hosts": row.hosts,
        }
    return figures


def _runs(samples: pd.DataFrame) -> list[dict[str, Any]]:
    """The runs, oldest first; hosts are counted in the order of their first run."""
    hosts: dict[str, int] = {}
    pairs = sorted(set(zip(samples["run"], samples["host"], strict=True)))
    return [{"run": run, "host": hosts.setdefault(host, len(hosts) + 1)} for run, host in pairs]


def _anonymous(machine: Mapping[str, Any]) -> dict[str, Any]:
    """The description without the host's identifier; text that may identify it is null."""
    known = {key: value for key, value in machine.items() if key in SentMachine.model_fields}
    known |= {"host": None, "kernel": _version(machine.get("kernel"))}
    found: dict[str, Any] = _without_identifiers(known)
    return found


def _without_identifiers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_identifiers(part) for key, part in value.items()}
    return None if isinstance(value, str) and not is_anonymous(value) else value


def _version(kernel: str | None) -> str | None:
    found = KERNEL.match(kernel or "")
    return found[0].strip(".") if found else None


def _number(value: float) -> float:
    return float(f"{value:.6g}")


def _ends(low: float, high: float) -> dict[str, float | None]:
    if math.isnan(low) or math.isnan(high):
        return {"low": None, "high": None}
    return {"low": _number(low), "high": _number(high)}


def to_text(content: Mapping[str, Any]) -> str:
    """The text of the file: a line per key, study and variant."""
    studies = ",\n".join(
        f"  {json.dumps(study)}: {{\n"
        + ",\n".join(
            f"   {json.dumps(name)}: {json.dumps(sent, separators=COMPACT)}"
            for name, sent in variants.items()
        )
        + "\n  }"
        for study, variants in content["studies"].items()
    )
    values = {key: json.dumps(value) for key, value in content.items()}
    values["studies"] = f"{{\n{studies}\n }}" if studies else "{}"
    text = "{\n" + ",\n".join(f" {json.dumps(key)}: {value}" for key, value in values.items())
    return f"{text}\n}}\n"


def within_limit(
    content: dict[str, Any], studies: Mapping[str, Study], limit: int
) -> dict[str, Any]:
    """`content`, if its text has more than `limit` bytes with only the times that pages compare."""
    if len(to_text(content)) <= limit:
        return content
    compared = {
        study: {
            name: sent
            | {
                "figures": {
                    metric: figure
                    for metric, figure in sent["figures"].items()
                    if metric in studies[study].metrics_for(studies[study].variant(name))
                }
            }
            for name, sent in variants.items()
        }
        for study, variants in content["studies"].items()
    }
    kept = {
        study: {name: sent for name, sent in variants.items() if sent["figures"]}
        for study, variants in compared.items()
    }
    figures = {study: variants for study, variants in kept.items() if variants}
    return content | {
        "studies": figures,
        "code": content["code"] | {"sha256": code_digest(figures)},
    }


def only_hosts(found: Collected, hosts: list[str], without: list[str]) -> Collected:
    """`found` with the samples of `hosts`, or of all but those `without`."""
    known = sorted(set(found.samples["host"]))
    for host in (*hosts, *without):
        require_known("host", host, known)
    kept = [host for host in hosts or known if host not in without]
    found.samples = found.samples[found.samples["host"].isin(kept)]
    return found


def check_files(paths: Sequence[Path], studies: Mapping[str, Study]) -> None:
    """Print a line for each file; HotpathError at the end if one is refused."""
    refused = 0
    for path in paths:
        try:
            sent = read_submission(path, studies)
            print(f"{path}: accepted; {len(sent.current)} variants are of today's code")
        except HotpathError as error:
            print(f"refused: {visible(str(error))}")
            refused += 1
    if refused:
        raise HotpathError(f"expected submissions without faults, got {refused} with one")


def command_line() -> argparse.ArgumentParser:
    parser = program("analysis.results.submit", __doc__)
    parser.add_argument("machine", nargs="?", help="folder of its results")
    parser.add_argument("--name", help="name of the submission; by default that of the machine")
    parser.add_argument(
        "--results", type=existing_folder, default=ROOT / "results", help="measured results"
    )
    parser.add_argument("--hosts", nargs="+", default=[], help="only the runs on these hosts")
    parser.add_argument("--without-hosts", nargs="+", default=[], help="no run on these hosts")
    parser.add_argument("--reach", type=existing_file, help="output of tools/reach.cu --json")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for <name>.json")
    parser.add_argument("--check", type=Path, nargs="+", default=[], help="only check these files")
    return parser


def main() -> None:
    arguments = command_line().parse_args()
    studies = discover()
    if arguments.check:
        check_files(arguments.check, studies)
        return
    reach = read_json(arguments.reach, SUBMISSION_LIMIT_BYTES) if arguments.reach else None
    name = arguments.name or arguments.machine
    if arguments.machine is None and reach and name:
        content = reach_submission(reach, name)
    else:
        require_known("machine", str(arguments.machine), machines(arguments.results))
        found = collect(arguments.results, studies, machine=arguments.machine)
        for folder, reason in found.refused.items():
            print(f"warning: {folder} is left out: {reason}")
        found = only_hosts(found, arguments.hosts, arguments.without_hosts)
        content = submission(found, studies, arguments.machine, name)
    room = SUBMISSION_LIMIT_BYTES - len(json.dumps([reach, "0" * 100]))
    content = with_reach(within_limit(content, studies, room), reach)
    path = arguments.out / f"{name}.json"
    checked(content, studies, str(path))
    if (size := len(text := to_text(content))) > SUBMISSION_LIMIT_BYTES:
        raise HotpathError(f"{path}: expected at most {SUBMISSION_LIMIT_BYTES} bytes, got {size}")
    write_whole(path, text)
    print(f"{path}: {size / 1000:.0f} KB")


if __name__ == "__main__":
    fail_in_one_line(main)
