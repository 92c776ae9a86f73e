"""Capture counters and a timeline of the variants of a study, in the case it says.

python -m analysis.profile STUDY [--case ID] [--config JSON]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from analysis.cli import fail_in_one_line
from analysis.config import BUILD, Config, load_config
from analysis.errors import FieldError, HotpathError, require_known
from analysis.files import write_whole
from analysis.gpu import open_gpus, show_only
from analysis.measure.clock import utc_now
from analysis.measure.machine_lock import whole_machine
from analysis.measure.needs import Provision, in_use
from analysis.measure.plan import Target, target
from analysis.modules import built_modules
from analysis.profile import ncu
from analysis.source import fingerprint
from analysis.store.counters import Counter, write_counters
from analysis.store.results import set_capture
from analysis.study import CAPTURE_KINDS, Study, Variant
from analysis.toolchain.compilers import find_toolchain

Capture = Callable[[list[str], Path], None]
"""Runs the session for the named variants and leaves <variant>.<kind>.csv in the folder."""


def session(kind: str, study: Study, case: str, modules: Path, out: Path) -> list[str]:
    words = [kind, study.name, case, str(modules), str(out)]
    return [sys.executable, "-m", "analysis.profile.session", *words]


def capture_ncu(study: Study, case: str, modules: Path, names: list[str], out: Path) -> None:
    text = ncu.capture([*session("ncu", study, case, modules, out), *names])
    log = BUILD / "logs" / "profile" / f"{study.name}.ncu.csv"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(text)
    counters: dict[str, list[Counter]] = {}
    for name, counter in ncu.parse(text, case):
        counters.setdefault(name, []).append(counter)
    for name in names:
        if name in counters:
            write_counters(out / f"{name}.ncu.csv", counters[name])


def capture_timeline(study: Study, case: str, modules: Path, names: list[str], out: Path) -> None:
    command = [*session("timeline", study, case, modules, out), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise HotpathError((done.stderr.strip().splitlines() or ["no message"])[-1])


CAPTURES = {"ncu": capture_ncu, "timeline": capture_timeline}


def capture_all(study: Study, case: str, config: Config) -> None:
    """Capture every kind. If one is impossible here, the provenance records the reason."""
    with open_gpus(config.gpus) as gpus:
        provision = Provision.of(gpus, find_toolchain(config.nvcc, config.libfabric), config)
        where = target(config, gpus)
        modules = built_modules(gpus[0].arch if config.arch == "auto" else config.arch)
    variants = [
        variant
        for variant in study.variants
        if variant.on_gpu
        and provision.unmet(variant) is None
        and case in {known.id for known in variant.cases}
    ]
    show_only(in_use(gpus, variants))
    if not variants:
        raise FieldError("case", f"one that a variant of {study.name} has here", case)
    for kind in CAPTURE_KINDS:
        wanted = [variant for variant in variants if kind in variant.captures]
        if not wanted:
            continue
        folder = BUILD / "captures" / study.name / kind
        shutil.rmtree(folder, ignore_errors=True)  # of a run that was stopped
        folder.mkdir(parents=True)
        reason = ""
        try:
            CAPTURES[kind](study, case, modules, [v.name for v in wanted], folder)
        except HotpathError as error:
            reason = str(error)
        for variant in wanted:
            keep(kind, study, variant, case, where, folder, reason)
        shutil.rmtree(folder)


def keep(
    kind: str, study: Study, variant: Variant, case: str, where: Target, folder: Path, reason: str
) -> None:
    """Store a capture, or the reason why there is none, next to the variant's samples."""
    captured = folder / f"{variant.name}.{kind}.csv"
    destination = where.root / where.machine / study.name / captured.name
    if captured.exists():
        write_whole(destination, captured.read_text())
    elif not reason:
        reason = "launches no kernel"
    status = f"not captured: {reason}" if reason else "captured"
    print(f"{study.name}/{variant.name}: {kind}: {status}", file=sys.stderr)
    entry = {
        "status": status,
        "case": case,
        "at": utc_now("seconds"),
        "source_sha256": fingerprint(study, variant),
    }
    set_capture(where.root, where.machine, study.name, variant.name, kind, entry)


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m analysis.profile",
        description="Capture counters and a timeline of a study.",
    )
    parser.add_argument("study")
    parser.add_argument("--case", help="a case id; by default what study.yaml says")
    parser.add_argument("--config", type=json.loads, default={}, help="overrides, as JSON")
    return parser


def main() -> None:
    arguments = command_line().parse_args()
    config = load_config(arguments.config)
    require_known("study", arguments.study, sorted(config.studies))
    study = config.studies[arguments.study]
    with whole_machine(config.busy, f"profiling {study.name}"):
        capture_all(study, arguments.case or study.captured.case, config)


if __name__ == "__main__":
    fail_in_one_line(main)
