"""Capture counters and a timeline of the variants of a study, in the case it says.

python -m analysis.measure.profile STUDY [--case ID] [--config JSON]
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analysis import BUILD
from analysis.base.cli import fail_in_one_line, program, settings
from analysis.base.errors import FieldError, HotpathError, require_known
from analysis.base.files import write_whole
from analysis.base.gpu import open_gpus, show_only
from analysis.base.records import write_records
from analysis.measure.clock import utc_now
from analysis.measure.machine_lock import whole_machine
from analysis.measure.needs import Provision, in_use
from analysis.measure.plan import Target, refuse_damaged, target
from analysis.measure.profile import ncu
from analysis.results.store.counters import CAPTURED, NO_KERNEL, Counter
from analysis.results.store.results import set_capture
from analysis.study import CAPTURE_KINDS, Study, Variant
from analysis.study.config import Config, load_config
from analysis.study.source import fingerprint
from analysis.toolchain.modules import built_modules


def session(kind: str, study: Study, case: str, modules: Path, out: Path) -> list[str]:
    words = [kind, study.name, case, str(modules), str(out)]
    return [sys.executable, "-m", "analysis.measure.profile.session", *words]


def capture_ncu(study: Study, case: str, modules: Path, names: list[str], out: Path) -> None:
    text = ncu.capture([*session("ncu", study, case, modules, out), *names])
    log = BUILD / "logs" / "profile" / f"{study.name}.{case}.ncu.csv"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(text)
    counters: dict[str, list[Counter]] = {}
    for name, counter in ncu.parse(text, case):
        counters.setdefault(name, []).append(counter)
    for name in names:
        if name in counters:
            write_records(out / f"{name}.ncu.csv", Counter, counters[name])


def capture_timeline(study: Study, case: str, modules: Path, names: list[str], out: Path) -> None:
    command = [*session("timeline", study, case, modules, out), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise HotpathError((done.stderr.strip().splitlines() or ["no message"])[-1])


CAPTURES = {"ncu": capture_ncu, "timeline": capture_timeline}


def capture_all(study: Study, asked: str | None, config: Config) -> None:
    """Capture every kind, of each variant in the case `asked` for, by default its captured case.

    If one is impossible here, the provenance records the reason. HotpathError where that is
    damaged."""
    with open_gpus(config.gpus) as gpus:
        provision = Provision.of(gpus, config)
        where = target(config, gpus)
        modules = built_modules(gpus[0].arch if config.arch == "auto" else config.arch)
    refuse_damaged(study, where, config.grid.name)
    usable = [v for v in study.variants if v.on_gpu and provision.unmet(v) is None]
    by_case = variants_by_case(study, usable, asked)
    show_only(in_use(gpus, [variant for variants in by_case.values() for variant in variants]))
    for case, variants in by_case.items():
        for kind in CAPTURE_KINDS:
            wanted = [variant for variant in variants if kind in variant.captures]
            if wanted:
                capture(kind, study, case, wanted, modules, where)


def variants_by_case(
    study: Study, variants: Sequence[Variant], asked: str | None
) -> dict[str, list[Variant]]:
    """The captured ones of `variants`, by their case. FieldError if there are none."""
    found: dict[str, list[Variant]] = {}
    for variant in variants:
        captured = study.captured_of(variant)
        case = asked or (captured.case if captured else "")
        if variant.case(case):
            found.setdefault(case, []).append(variant)
    if not found:
        expected = f"one that a variant of {study.name} has here"
        raise FieldError("case", expected, asked or study.captured[0].case)
    return found


def capture(
    kind: str, study: Study, case: str, variants: Sequence[Variant], modules: Path, where: Target
) -> None:
    """Capture one kind of `variants` in one case."""
    folder = BUILD / "captures" / study.name / kind
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was stopped
    folder.mkdir(parents=True)
    reason = ""
    try:
        CAPTURES[kind](study, case, modules, [variant.name for variant in variants], folder)
    except HotpathError as error:
        reason = str(error)
    for variant in variants:
        keep(kind, study, variant, case, where, folder, reason)
    shutil.rmtree(folder)


def keep(
    kind: str, study: Study, variant: Variant, case: str, where: Target, folder: Path, reason: str
) -> None:
    """Store a capture, or the reason why there is none, next to the variant's samples."""
    captured = folder / f"{variant.name}.{kind}.csv"
    destination = where.folder / study.name / captured.name
    if captured.exists():
        write_whole(destination, captured.read_text())
    elif not reason:
        reason = NO_KERNEL
    status = f"not captured: {reason}" if reason else CAPTURED
    print(f"{study.name}/{variant.name}: {kind}: {status}", file=sys.stderr)
    entry: dict[str, Any] = {
        "status": status,
        "case": case,
        "at": utc_now("seconds"),
        "source_sha256": fingerprint(study, variant),
    }
    if kind == "ncu" and (bounds := study.bounds_of(variant.name, counted=True)):
        entry["bounds"] = bounds
    set_capture(where.root, where.machine, study.name, variant.name, kind, entry)


def command_line() -> argparse.ArgumentParser:
    parser = program("analysis.measure.profile", __doc__)
    parser.add_argument("study")
    parser.add_argument("--case", help="a case id; by default what study.yaml says")
    parser.add_argument("--config", type=settings, default={}, help="overrides, as JSON")
    return parser


def main() -> None:
    arguments = command_line().parse_args()
    config = load_config(arguments.config)
    require_known("study", arguments.study, sorted(config.studies))
    study = config.studies[arguments.study]
    with whole_machine(config.busy, f"profiling {study.name}"):
        capture_all(study, arguments.case, config)


if __name__ == "__main__":
    fail_in_one_line(main)
