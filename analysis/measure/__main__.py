"""Measure studies on this machine: whatever is not measured yet, or one variant again.

python -m analysis.measure STUDY ... [--variant NAME] [--config JSON]

How far it is goes to the standard output; what a log keeps besides goes to the standard error.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

from analysis import BUILD, ROOT
from analysis.base.cli import fail_in_one_line, program, settings
from analysis.base.errors import HotpathError, require_known
from analysis.base.files import require_room
from analysis.base.gpu import Gpu, NoGpu, open_gpus
from analysis.base.processes import remove_orphaned_memory
from analysis.measure.commit import commit_of
from analysis.measure.journal import discard_outdated
from analysis.measure.machine import describe
from analysis.measure.machine_lock import whole_machine
from analysis.measure.needs import in_use
from analysis.measure.places import Place, Places
from analysis.measure.plan import (
    Plan,
    StudyError,
    Target,
    plan_again,
    plan_pending,
    wrong_output,
    wrong_variants,
)
from analysis.measure.progress import Progress, expected
from analysis.measure.publish import publish
from analysis.measure.run import Host, import_once, imported, run_rounds
from analysis.results.store.copying import require_same_kind
from analysis.results.store.runs import read_study
from analysis.study import Study, Variant
from analysis.study.config import Config, changed, load_config
from analysis.toolchain.arch import resolve_arch
from analysis.toolchain.compilers import find_toolchain
from analysis.toolchain.modules import built_modules


def measure(names: Sequence[str], variant: str | None, overrides: dict[str, object]) -> None:
    """Run every round that the plans of these studies still lack, study by study, and put the
    samples of each into the results.

    One process measures all of them, so that what takes long to import is imported once. A study
    that fails does not stop the others: HotpathError with a line for each at the end, and again
    next time while a variant's last output was wrong.
    """
    config = load_config(overrides)
    for name in names:
        require_known("study", name, sorted(config.studies))
    studies = [config.studies[name] for name in names]
    if variant:
        for study in studies:
            study.variant(variant)  # FieldError for an unknown one, before anything is waited for
    with ExitStack() as stack:
        stack.enter_context(whole_machine(config.busy, f"measuring {', '.join(names)}"))
        require_room(BUILD)
        remove_orphaned_memory()
        gpus: Sequence[Gpu] = ()
        try:
            gpus = stack.enter_context(open_gpus(config.gpus))
        except NoGpu as error:
            print(f"{error}; measuring only variants without one", file=sys.stderr)
        session = Session(config, gpus, command_of(names, variant, overrides))
        plans = [plan for study in studies if (plan := session.plan(study, variant))]
        failures = session.run(plans)
        if not variant:
            others = [study for study in studies if study.name not in failures]
            failures |= session.wrong_outputs(others)
        if failures:
            raise HotpathError("\nerror: ".join(failures.values()))


class Session:
    """Plans and runs studies on this machine, with the settings of `config`."""

    def __init__(self, config: Config, gpus: Sequence[Gpu], command: str) -> None:
        self._config = config
        self._command = command
        self._checked: set[Path] = set()
        self._toolchain = find_toolchain(config.nvcc, config.libfabric)
        self._places = Places(config, gpus)
        self._arch = resolve_arch(config.arch, config.gpus, config.nvcc)

    def plan(self, study: Study, variant: str | None) -> Plan | None:
        """Plan a study: `variant` again together with its baselines, or every variant that lacks a
        fresh sample. None if none does.

        HotpathError if the results are of another kind of machine.
        """
        place, config = self._places.of(study), self._config
        where = place.where
        require_room(where.folder / study.name)
        if variant:
            plan: Plan | None = plan_again(study, config.grid, where, variant)
        else:
            plan = plan_pending(study, config.grid, where, place.provision, config.runs)
        if plan is None:
            print(f"{study.name}: every case has a fresh sample on {where.machine}")
            return None
        self._refuse_other_machine(place)

        def say(path: Path, error: str | Exception) -> None:
            print(f"{study.name}: {path.name} is left out: {error}", flush=True)

        for _ in read_study(where.folder / study.name, study, say):
            pass
        return plan

    def _refuse_other_machine(self, place: Place) -> None:
        """HotpathError if the results are those of a machine of another kind: rows of skipped cases
        would replace its samples."""
        folder = place.where.folder
        if folder not in self._checked:
            require_same_kind(describe(place.provision.gpus), folder, "config: machine")
            self._checked.add(folder)

    def wrong_outputs(self, studies: Iterable[Study]) -> dict[str, str]:
        """The error of each study with a variant whose last output on this host was wrong."""
        wrong = {study.name: wrong_variants(study, self._where(study)) for study in studies}
        return {name: f"{wrong_output(name, found)}" for name, found in wrong.items() if found}

    def _where(self, study: Study) -> Target:
        return self._places.of(study).where

    def run(self, plans: Sequence[Plan]) -> dict[str, str]:
        """Run the plans in their order and publish each when it is finished. The error of each
        study that failed, by its name.

        HotpathError for one that leaves nothing more to measure, after those of earlier studies.
        """
        runnable = {plan.study.name: self._runnable(plan) for plan in plans}
        import_once(
            sorted({name for p in plans for name in imported(p.study, runnable[p.study.name])})
        )
        if plans and (why := commit_of(ROOT).unknown):
            print(f"the commit is not known, so the results name none: {why}", flush=True)
        first = self._places.first.where
        if plans and first.root == BUILD / "unnamed":
            print(
                f"this machine has no name: results go to {first.folder.relative_to(ROOT)}, "
                "which no site shows; to publish them, measure with --config machine=NAME",
                flush=True,
            )
        failures: dict[str, str] = {}
        digests = [plan.digest for plan in plans]
        provisions = [self._places.of(plan.study).provision for plan in plans]
        for plan, digest, progress in zip(plans, digests, expected(plans, provisions), strict=True):
            try:
                self._measure(plan, digest, progress, runnable[plan.study.name])
            except StudyError as error:
                failures[plan.study.name] = str(error)
                if plan is not plans[-1]:
                    print(f"{plan.study.name}: failed; the other studies go on", flush=True)
            except HotpathError as error:
                raise HotpathError("\nerror: ".join([*failures.values(), str(error)])) from error
        return failures

    def _measure(
        self, plan: Plan, digest: str, progress: Progress, runnable: Sequence[Variant]
    ) -> None:
        """Run one plan and publish it."""
        provision = self._places.of(plan.study).provision
        require_same_code(plan, digest)
        for line in discard_outdated(plan, provision, self._config.runs):
            print(line, flush=True)
        used = in_use(provision.gpus, runnable)
        host = Host(
            gpus=used,
            others=other_users(used, self._config.shared_gpu),
            toolchain=self._toolchain,
            arch=self._arch,
            modules=built_modules(self._arch),
            round_limit_s=self._config.round_limit_s,
            command=self._command,
        )
        run_rounds(plan, provision, host, progress)
        require_same_code(plan, digest)
        for line in publish(plan, provision, host):
            print(line, file=sys.stderr)

    def _runnable(self, plan: Plan) -> list[Variant]:
        provision = self._places.of(plan.study).provision
        return [variant for variant in plan.variants if provision.unmet(variant) is None]


def require_same_code(plan: Plan, digest: str) -> None:
    """StudyError unless the plan's code is still that of its digest, and of the built modules."""
    if plan.digest != digest:
        raise StudyError(
            f"{plan.study.name}: its code has changed since this command began, so nothing of it is"
            " published; run the same command again"
        )


def command_of(studies: Sequence[str], variant: str | None, overrides: dict[str, object]) -> str:
    """The command that run files name: quoted, with the settings that differ from the defaults."""
    words = ["python", "-m", "analysis.measure", *studies]
    words += ["--variant", variant] if variant else []
    settings = changed(overrides)
    words += ["--config", json.dumps(settings, sort_keys=True)] if settings else []
    return shlex.join(words)


def other_users(gpus: Sequence[Gpu], policy: str) -> list[int]:
    """Ids of other processes on the GPUs, as far as they are known; HotpathError if the
    configuration refuses to share."""
    others = {gpu.index: gpu.other_processes() for gpu in gpus}
    for index, processes in others.items():
        if processes is None:
            print(f"GPU {index} does not say who uses it; it is measured anyway", flush=True)
        elif processes and policy == "refuse":
            raise HotpathError(
                f"config: shared_gpu: GPU {index} is used by processes {processes}; wait for "
                "them, choose another GPU with gpu=, or measure anyway with shared_gpu=record"
            )
    return sorted({process for processes in others.values() for process in processes or ()})


def command_line() -> argparse.ArgumentParser:
    parser = program("analysis.measure", __doc__)
    parser.add_argument("studies", nargs="+", metavar="study")
    parser.add_argument("--variant", help="measure it again, together with its baselines")
    parser.add_argument("--config", type=settings, default={}, help="overrides, as JSON")
    return parser


def main() -> None:
    arguments = command_line().parse_args()
    measure(arguments.studies, arguments.variant, arguments.config)


if __name__ == "__main__":
    fail_in_one_line(main)
