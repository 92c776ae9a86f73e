"""Measure one study on this machine: whatever is not measured yet, or one variant again.

python -m analysis.measure STUDY [--variant NAME] [--config JSON]

How far it is goes to the standard output; what a log keeps besides goes to the standard error.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack

from analysis import ROOT
from analysis.cli import fail_in_one_line, settings
from analysis.config import BUILD, changed, load_config
from analysis.errors import HotpathError, require_known
from analysis.files import require_room
from analysis.gpu import Gpu, GpuError, open_gpus
from analysis.measure.commit import commit_of
from analysis.measure.forecast import forecast
from analysis.measure.journal import discard_outdated, settle
from analysis.measure.machine_lock import whole_machine
from analysis.measure.needs import Provision, in_use
from analysis.measure.plan import (
    Plan,
    Target,
    pending,
    refuse_damaged,
    target,
    with_companions,
)
from analysis.measure.publish import publish
from analysis.measure.run import Host, run_rounds
from analysis.modules import built_modules
from analysis.processes import keep_sockets_in, remove_orphaned_memory
from analysis.schema import check, read_json
from analysis.toolchain.compilers import find_toolchain, resolve_arch


def measure(
    study_name: str,
    variant: str | None,
    overrides: dict[str, object],
    among: Sequence[str] = (),
    since: str = "",
) -> None:
    """Run every round the plan still lacks, then put the samples into the results."""
    config = load_config(overrides)
    require_known("study", study_name, sorted(config.studies))
    study = config.studies[study_name]
    if variant:
        study.variant(variant)  # FieldError for an unknown one, before anything is waited for
    for name in among:
        require_known("among", name, sorted(config.studies))
    with ExitStack() as stack:
        stack.enter_context(whole_machine(config.busy, f"measuring {study.name}"))
        require_room(BUILD)
        keep_sockets_in(BUILD / "processes")
        remove_orphaned_memory()
        gpus: Sequence[Gpu] = ()
        try:
            gpus = stack.enter_context(open_gpus(config.gpus))
        except GpuError as error:
            print(f"{study.name}: {error}; measuring only variants without one", file=sys.stderr)
        toolchain = find_toolchain(config.nvcc, config.libfabric)
        arch = resolve_arch(config.arch, config.gpus)
        provision = Provision.of(gpus, toolchain, config)
        where = target(config, gpus)
        require_room(where.folder / study.name)
        for line in settle(study, where, config.grid.name):
            print(line, flush=True)
        if variant:
            chosen = study.companions(variant)
        else:
            chosen = with_companions(study, pending(study, where, config.grid.name, provision))
        if not chosen:
            print(f"{study.name}: every case has a fresh sample on {where.machine}")
            return
        refuse_other_machine(where, gpus)
        refuse_damaged(study, where, config.grid.name)
        used = in_use(gpus, (v for v in chosen if provision.unmet(v) is None))
        plan = Plan(study, tuple(chosen), config.grid, where)
        for line in discard_outdated(plan, provision):
            print(line, flush=True)
        host = Host(
            gpus=used,
            others=other_users(used, config.shared_gpu),
            toolchain=toolchain,
            arch=arch,
            modules=built_modules(arch),
            round_limit_s=config.round_limit_s,
            command=told_command(study.name, variant, overrides),
        )
        together = [config.studies[name] for name in among]
        expected = forecast(plan, provision, together, since)
        if expected.place == 1 and (why := commit_of(ROOT).unknown):
            print(f"the commit is not known, so the results name none: {why}", flush=True)
        run_rounds(plan, provision, host, expected)
        for line in publish(plan, provision, host):
            print(line, file=sys.stderr)
        if where.root == BUILD / "unnamed":
            folder = (where.folder / study.name).relative_to(ROOT)
            print(
                f"{study.name}: this machine has no name, so the samples are in {folder}, which no "
                "site shows; measured with --config machine=NAME, `snakemake site` shows them"
            )


def told_command(study: str, variant: str | None, overrides: dict[str, object]) -> str:
    """The command for provenance: quoted, with the settings that differ from the defaults."""
    words = ["python", "-m", "analysis.measure", study]
    words += ["--variant", variant] if variant else []
    settings = changed(overrides)
    words += ["--config", json.dumps(settings, sort_keys=True)] if settings else []
    return shlex.join(words)


def refuse_other_machine(where: Target, gpus: Sequence[Gpu]) -> None:
    """Raise HotpathError if the results are those of a machine with another kind of GPU, or with
    more GPUs than are found now: rows of skipped cases would replace its samples."""
    path = where.folder / "machine.json"
    if not path.exists():
        return
    described = read_json(path)
    check(described, "machine", str(path))
    named = described.get("gpu")
    if named and gpus and gpus[0].name != named:
        raise HotpathError(
            f"config: machine: {where.machine} was measured with another kind of GPU ({named}) "
            f"than this one ({gpus[0].name}); its results are left unchanged, give another name"
        )
    had = described.get("gpus", 1) if named else 0
    if len(gpus) < had:
        with_what = f"a GPU ({named})" if had == 1 else f"{had} GPUs ({named})"
        here = f"only {len(gpus)} of them is in use" if gpus else "no GPU was found"
        raise HotpathError(
            f"config: machine: {where.machine} was measured with {with_what}, but {here} here; its "
            "results are left unchanged"
        )


def other_users(gpus: Sequence[Gpu], policy: str) -> list[int]:
    """Ids of other processes on the GPUs; HotpathError if the configuration refuses to share."""
    others = {gpu.index: gpu.other_processes() for gpu in gpus}
    shared = next((index for index, processes in others.items() if processes), None)
    if shared is not None and policy == "refuse":
        raise HotpathError(
            f"config: shared_gpu: GPU {shared} is used by processes {others[shared]}; wait for "
            "them, choose another GPU with gpu=, or measure anyway with shared_gpu=record"
        )
    return sorted({process for processes in others.values() for process in processes})


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m analysis.measure", description="Measure one study on this machine."
    )
    parser.add_argument("study")
    parser.add_argument("--variant", help="measure it again, with all that it is compared with")
    parser.add_argument("--among", nargs="*", default=[], help="studies that are measured together")
    parser.add_argument("--since", default="", help="when the first of them began, in UTC")
    parser.add_argument("--config", type=settings, default={}, help="overrides, as JSON")
    return parser


def main() -> None:
    arguments = command_line().parse_args()
    measure(arguments.study, arguments.variant, arguments.config, arguments.among, arguments.since)


if __name__ == "__main__":
    fail_in_one_line(main)
