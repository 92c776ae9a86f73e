"""Plans of measurements on this machine: where each study is measured, with which GPUs, and its
variants with cases that lack a fresh sample."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path

from analysis import BUILD
from analysis.base.errors import HotpathError
from analysis.base.gpu import Gpu, free_twins
from analysis.measure.machine import host_id, peer_access, slug
from analysis.results.store import METHOD_VERSION
from analysis.results.store.keys import UNKNOWN_HOST
from analysis.results.store.runs import Refuse, Run, codes_of, ignore, read_captures, read_runs
from analysis.study import GRIDS, Study, Variant
from analysis.study.config import Config, Grid
from analysis.study.source import fingerprint
from analysis.toolchain.compilers import find_toolchain, require_supported
from analysis.toolchain.packages import PACKAGES
from analysis.toolchain.peers import unusable


@dataclass(frozen=True)
class Place:
    """Where a study is measured. Results go to <root>/<machine>/<study>/<time>-<host>.csv.

    `gpus` are those that it may use, `cuda` the version that modules are built with, `apart` the
    pairs of GPUs that cannot access each other's memory.
    """

    root: Path
    machine: str
    host: str = UNKNOWN_HOST
    gpus: Sequence[Gpu] = ()
    cuda: str | None = None
    managed: bool = False
    apart: tuple[tuple[int, int], ...] = ()

    @property
    def folder(self) -> Path:
        """The folder of this machine's results."""
        return self.root / self.machine

    def runs(self, study: Study, refuse: Refuse = ignore) -> Iterator[Run]:
        """The runs of the study on this machine, newest first; `refuse` hears of bad ones."""
        return read_runs(self.folder / study.name, study, refuse)

    def in_use(self, variants: Sequence[Variant]) -> tuple[Gpu, ...]:
        """The first of the GPUs, as many as any of `variants` needs, and at least one."""
        return tuple(self.gpus[: max((variant.gpus for variant in variants), default=1)])

    def unmet(self, variant: Variant) -> str | None:
        """The reason why `variant` cannot run here, or None."""
        reasons = (self._unmet(need, variant.gpus) for need in variant.needs)
        return next(filter(None, reasons), None) or unusable(variant)

    def _unmet(self, need: str, wanted_gpus: int) -> str | None:
        if need in PACKAGES:
            return PACKAGES[need].unmet
        if need == "managed":
            return None if self.managed else "managed memory is opt-in: managed=true"
        if need.startswith("cuda"):
            is_old = _numbers(self.cuda or "") < _numbers(need)
            wanted = need.removeprefix("cuda>=")
            return f"needs CUDA {wanted}, modules are built with {self.cuda}" if is_old else None
        if not self.gpus:
            return "no GPU"
        if need.startswith("sm_") and _numbers(arch := self.gpus[0].arch) < _numbers(need):
            return f"needs {need.rstrip('af')}, the GPU is {arch}"
        if (got := len(self.gpus)) < wanted_gpus:
            need = f"needs {wanted_gpus} free GPUs of one kind, got {got}"
            return f"{need}; gpu={list(range(wanted_gpus))} would name them"
        for i, j in self.apart:
            if j < wanted_gpus:
                pair = f"GPU {self.gpus[i].index} and GPU {self.gpus[j].index}"
                return f"{pair} cannot access each other's memory"
        return None


def _numbers(version: str) -> list[int]:
    """The numbers in a version or an architecture."""
    return [int(digits) for digits in re.findall(r"\d+", version)]


def find_places(config: Config, gpus: Sequence[Gpu]) -> dict[str, Place]:
    """The place of every known study, by its name; `gpus` are the configured ones, open now.

    If the configuration names one GPU, a study of several also uses free GPUs of that kind. Its
    results are those of another machine, such as `nvidia-h200-x2`. UnsupportedGpu if the compiler
    cannot build for the GPU.
    """
    wanted = {
        name: max((variant.gpus for variant in study.variants), default=1)
        for name, study in config.known.items()
    }
    first = several = _place(config, gpus)
    if gpus and not isinstance(config.gpu, tuple):
        twins = islice(free_twins(gpus[0]), max(wanted.values(), default=1) - 1)
        several = _place(config, (*gpus, *twins))
    return {name: several if count > 1 else first for name, count in wanted.items()}


def _place(config: Config, gpus: Sequence[Gpu]) -> Place:
    """The place with these GPUs. Its machine is the configured one, else named after the GPU. The
    name ends with the number of several GPUs, unless the configuration names both.

    Results of a machine without a GPU are kept only if the configuration names the machine. No
    compiler is looked for without a GPU.
    """
    root, cuda = config.results, None
    several = f"-x{len(gpus)}" if len(gpus) > 1 else ""
    if config.machine != "auto":
        machine = config.machine + ("" if isinstance(config.gpu, tuple) else several)
    elif gpus:
        machine = (slug(gpus[0].name) or "gpu") + several
    else:
        machine = "unnamed"
        root = root if config.grid.name == "smoke" else BUILD / "unnamed"
    if gpus:
        toolchain = find_toolchain(config.nvcc)
        require_supported(config.arch, gpus[0].arch, toolchain)
        cuda = toolchain.version
    apart = tuple(pair for pair, known in peer_access(gpus).items() if known is False)
    return Place(root, machine, host_id(gpus), gpus, cuda, config.managed, apart)


class StudyError(HotpathError):
    """A failure of one study, which leaves the machine fit to measure the others."""


@dataclass(frozen=True)
class Plan:
    """One run of one study; `asked` names the variants that were asked for, none for all."""

    study: Study
    variants: tuple[Variant, ...]
    grid: Grid
    place: Place
    asked: tuple[str, ...] = ()
    digest: str = field(init=False)
    """Changes with anything that invalidates the rounds of an interrupted run."""

    def __post_init__(self) -> None:
        variants = {
            variant.name: [
                fingerprint(self.study, variant),
                *(
                    [case.id, case.metrics, case.samples, case.visits, case.every, case.warm]
                    for case in variant.in_grid(self.grid.name)
                ),
            ]
            for variant in self.variants
        }
        parts = json.dumps([METHOD_VERSION, asdict(self.grid), variants], sort_keys=True)
        object.__setattr__(self, "digest", hashlib.sha256(parts.encode()).hexdigest())

    @property
    def runnable(self) -> list[Variant]:
        """The variants whose needs are met here."""
        return [variant for variant in self.variants if self.place.unmet(variant) is None]

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The GPUs that the variants use."""
        return self.place.in_use(self.runnable)

    @property
    def results(self) -> Path:
        """Folder of the study's results on this machine."""
        return self.place.folder / self.study.name

    @property
    def journal(self) -> Path:
        """Folder of the finished rounds, until the run is published."""
        rounds = BUILD / "rounds" / self.place.machine / self.study.name
        return rounds / f"{self.grid.name}-{self.place.host}"

    @property
    def budget_s(self) -> float:
        """Expected seconds of all rounds: the study's budget is shared by its variants."""
        return self.study.budget_s * len(self.runnable) / len(self.study.variants)


def plan_pending(
    study: Study, grid: Grid, place: Place, runs: int = 1, refuse: Refuse = ignore, again: str = ""
) -> Plan | None:
    """The plan of the variants that lack fresh samples of `runs` runs, with the companions of those
    that can run here, or that of the variant `again` and its companions. None if none lacks any.
    `refuse` hears of bad files of earlier runs."""
    if again:
        return Plan(study, tuple(study.companions(again)), grid, place, (again,))
    lacking = pending(study, place, grid.name, runs, refuse)
    if not lacking:
        return None
    asked = tuple(variant.name for variant in lacking)
    names = {*asked}
    for variant in lacking:
        if place.unmet(variant) is None:
            names |= {companion.name for companion in study.companions(variant.name)}
    if len(asked) == len([v for v in study.variants if v.in_grid(grid.name)]):
        asked = ()
    return Plan(study, tuple(v for v in study.variants if v.name in names), grid, place, asked)


def pending(
    study: Study, place: Place, grid: str, runs: int = 1, refuse: Refuse = ignore
) -> list[Variant]:
    """Variants with a case in `grid` that fewer than `runs` fresh runs have measured, or skipped
    for a reason that is still valid."""
    lacking = {(v.name, case.id): runs for v in study.variants for case in v.in_grid(grid)}
    codes = cache(lambda: codes_of(study))  # slow, and most machines have no run
    unmet = {variant.name: place.unmet(variant) for variant in study.variants}
    for run in place.runs(study, refuse):
        about = run.about
        if GRIDS.index(about.grid) < GRIDS.index(grid):
            continue
        # A need that was not met then may be met now. What a workload skipped stays skipped.
        fresh = about.fresh(codes())
        done = {
            cell
            for cell, is_measured in run.cells().items()
            if cell[0] in fresh and (is_measured or about.variants[cell[0]].unmet == unmet[cell[0]])
        }
        for cell in done & lacking.keys():
            lacking[cell] -= 1 if about.rounds else runs  # one run that skips everything is enough
            if lacking[cell] <= 0:
                del lacking[cell]
        if not lacking:
            break
    names = {variant for variant, _ in lacking}
    return [variant for variant in study.variants if variant.name in names]


def wrong_variants(study: Study, place: Place) -> list[str]:
    """Variants that had a wrong output when this host last ran their present code."""
    codes = codes_of(study)
    newest: dict[tuple[str, str], bool] = {}
    for run in place.runs(study):
        fresh = run.about.fresh(codes) if run.about.host.id == place.host else ()
        measured = [row for row in run.rows if row.variant in fresh and row.status != "skipped"]
        failed = {row.cell for row in measured if row.status == "failed"}
        newest = {row.cell: row.cell in failed for row in measured} | newest
    return sorted({variant for (variant, _), is_wrong in newest.items() if is_wrong})


def lacks_captures(study: Study, place: Place, grid: str, kinds: Sequence[str]) -> bool:
    """Whether a variant that can be profiled here lacks a capture of its current source."""
    if not place.gpus or grid == "smoke":
        return False
    codes = codes_of(study)
    taken = {
        (capture.about.kind, name)
        for capture in read_captures(place.folder / study.name)
        for name in capture.about.fresh(codes)
    }
    for variant in study.variants:
        case = study.captured_case(variant) if variant.on_gpu else None
        if case in {case.id for case in variant.in_grid(grid)}:
            lacking = {(k, variant.name) for k in kinds if k in variant.captures} - taken
            if lacking and place.unmet(variant) is None:
                return True
    return False
