"""Measure studies on this machine: whatever is not measured yet, or one variant again.

python -m analysis.measure STUDY ... [--variant NAME] [--config JSON]

How far it is goes to the standard output; what a log keeps besides goes to the standard error.
"""

import json
import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from analysis import BUILD
from analysis.base.cli import fail_in_one_line, program, settings
from analysis.base.errors import HotpathError, require_known
from analysis.base.files import require_room
from analysis.base.gpu import Gpu, NoGpu, open_gpus
from analysis.base.processes import keep_sockets_in
from analysis.measure.journal import Host, Journal, publish
from analysis.measure.machine import describe, whole_machine
from analysis.measure.plan import Place, Plan, StudyError, find_places, plan_pending, wrong_variants
from analysis.measure.run import import_once, run_rounds
from analysis.results.check import require_same_kind
from analysis.study import Study
from analysis.study.config import Config, changed, load_config
from analysis.toolchain.compilers import find_toolchain, resolve_arch
from analysis.toolchain.modules import built_modules

CHANGED: Final = "its code has changed since this command began; run the same command again"


def measure(names: Sequence[str], variant: str | None, overrides: dict[str, object]) -> None:
    """Run every round that the plans of these studies still lack, study by study, and put the
    samples of each into the results.

    One process measures all of them, so that what takes long to import is imported once. A study
    that fails does not stop the others, unless nothing more can be measured: HotpathError with a
    line for each at the end, and again next time while a variant's last output was wrong.
    """
    config = load_config(overrides)
    for name in names:
        require_known("study", name, sorted(config.studies))
        if variant:
            config.studies[name].variant(variant)  # FieldError for an unknown one, before waiting
    studies = [config.studies[name] for name in names]
    with ExitStack() as stack:
        stack.enter_context(whole_machine(config.busy, f"measuring {', '.join(names)}"))
        require_room(BUILD)
        keep_sockets_in(BUILD / "processes")
        gpus: Sequence[Gpu] = ()
        try:
            gpus = stack.enter_context(open_gpus(config.gpus))
        except NoGpu as error:
            print(f"{error}; measuring only variants without one", file=sys.stderr)
        toolchain = find_toolchain(config.nvcc)
        arch = resolve_arch(config.arch, config.gpus, config.nvcc)
        command = command_of(names, variant, overrides)
        host = Host(toolchain, arch, built_modules(arch), config.round_limit_s, command)
        places = find_places(config, gpus)
        found = [plan_of(study, variant, places[study.name], config) for study in studies]
        plans = [plan for plan in found if plan]
        for place in {plan.place.folder: plan.place for plan in plans}.values():
            # Rows of skipped cases would replace the samples of a machine of another kind.
            require_same_kind(describe(place.gpus), place.folder, "config: machine")
        import_once(plans)
        failures: dict[str, str] = {}
        for number, plan in enumerate(plans, start=1):
            of_studies = f"study {number} of {len(plans)}, " if len(plans) > 1 else ""
            later_s = sum(later.budget_s for later in plans[number:])
            try:
                host = replace(host, others=other_users(plan.gpus, config.shared_gpu))
                journal = Journal(plan)
                run_rounds(journal, host, of_studies, later_s)
                if replace(plan).digest != plan.digest:
                    raise StudyError(f"{plan.study.name}: {CHANGED}")
                print("\n".join(publish(journal, host)), flush=True)
            except HotpathError as error:
                print(f"{plan.study.name}: failed", flush=True)
                failures[plan.study.name] = str(error)
                if not isinstance(error, StudyError):
                    break
        for study in studies:
            if study.name not in failures and (wrong := wrong_variants(study, places[study.name])):
                said = f"wrong output of {', '.join(wrong)}; marked failed in the results"
                failures[study.name] = f"{study.name}: {said}"
        if failures:
            raise HotpathError("\nerror: ".join(failures.values()))


def plan_of(study: Study, variant: str | None, place: Place, config: Config) -> Plan | None:
    """The plan of `variant` again together with its baselines, or of every variant that lacks a
    fresh sample. None if none does. A line names each bad file of earlier results."""

    def refuse(path: Path, error: str | Exception) -> None:
        print(f"{study.name}: {path.name} is left out: {error}", flush=True)

    require_room(place.folder / study.name)
    plan = plan_pending(study, config.grid, place, config.runs, refuse, variant or "")
    if plan is None:
        print(f"{study.name}: every case has a fresh sample on {place.machine}")
    return plan


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
    users = {gpu.index: gpu.other_processes() or [] for gpu in gpus}
    for index, processes in users.items():
        if processes and policy == "refuse":
            raise HotpathError(
                f"config: shared_gpu: GPU {index} is used by processes {processes}; wait for them, "
                "choose another GPU with gpu=, or measure anyway with shared_gpu=record"
            )
    return sorted({process for processes in users.values() for process in processes})


def main() -> None:
    parser = program("analysis.measure", __doc__)
    parser.add_argument("studies", nargs="+", metavar="study")
    parser.add_argument("--variant", help="measure it again, together with its baselines")
    parser.add_argument("--config", type=settings, default={}, help="overrides, as JSON")
    arguments = parser.parse_args()
    measure(arguments.studies, arguments.variant, arguments.config)


if __name__ == "__main__":
    fail_in_one_line(main)
