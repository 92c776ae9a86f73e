"""Plans of measurements on this machine: variants with cases that lack a fresh sample."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from analysis import BUILD
from analysis.base.errors import HotpathError
from analysis.base.gpu import Gpu
from analysis.measure.machine import host_id, slug
from analysis.measure.needs import Provision
from analysis.results.store import METHOD_VERSION
from analysis.results.store.keys import UNKNOWN_HOST
from analysis.results.store.runs import (
    FAULTS,
    Run,
    codes_of,
    described,
    read,
    read_captures,
    read_runs,
)
from analysis.study import GRIDS, Study, Variant
from analysis.study.config import Config, Grid
from analysis.study.source import fingerprint


class StudyError(HotpathError):
    """A failure of one study, which leaves the machine fit to measure the others."""


def wrong_output(study: str, variants: Iterable[str]) -> StudyError:
    """The error of a study with variants of wrong output."""
    names = ", ".join(variants)
    return StudyError(f"{study}: wrong output of {names}; marked failed in the results")


@dataclass(frozen=True)
class Target:
    """Where the results of this host go: <root>/<machine>/<study>/<time>-<host>.csv."""

    root: Path
    machine: str
    host: str = UNKNOWN_HOST

    @property
    def folder(self) -> Path:
        """The folder of this machine's results."""
        return self.root / self.machine

    def runs(self, study: Study) -> Iterator[Run]:
        """The runs of the study on this machine, newest first; bad ones are left out."""
        return read_runs(self.folder / study.name, study)

    def runs_of_host(self, study: Study) -> Iterator[Run]:
        """Those of this host."""
        for path in described(self.folder / study.name):
            if path.stem.endswith(f"-{self.host}"):
                with suppress(*FAULTS):
                    run = read(path, study)
                    if isinstance(run, Run):
                        yield run


def target(config: Config, gpus: Sequence[Gpu]) -> Target:
    """The configured machine, else one named after the GPU, else a folder under build/. The name
    ends with the number of several GPUs, unless the configuration names both them and the machine.

    Results of a machine without a GPU are kept only if the configuration names the machine.
    """
    host = host_id(gpus)
    several = f"-x{len(gpus)}" if len(gpus) > 1 else ""
    if config.machine != "auto":
        is_named = isinstance(config.gpu, tuple)
        return Target(config.results, f"{config.machine}{'' if is_named else several}", host)
    if gpus:
        return Target(config.results, f"{slug(gpus[0].name) or 'gpu'}{several}", host)
    root = config.results if config.grid.name == "smoke" else BUILD / "unnamed"
    return Target(root, "unnamed", host)


def pending(
    study: Study, where: Target, grid: str, provision: Provision, runs: int = 1
) -> list[Variant]:
    """Variants with a case in `grid` that fewer than `runs` fresh runs have measured, or skipped
    for a reason that is still valid."""
    lacking = {
        (variant.name, case.id): runs
        for variant in study.variants
        for case in variant.in_grid(grid)
    }
    codes = codes_of(study)
    unmet = {variant.name: provision.unmet(variant) for variant in study.variants}
    for run in where.runs(study):
        if not lacking:
            break
        about = run.about
        if GRIDS.index(about.grid) < GRIDS.index(grid):
            continue
        # A need that was not met then may be met now. What a workload skipped stays skipped.
        done = {
            row.cell
            for row in run.rows
            if about.is_fresh(row.variant, codes.get(row.variant))
            and (row.status != "skipped" or about.variants[row.variant].unmet == unmet[row.variant])
        }
        # Of runs that skipped everything, a host keeps one.
        counts = dict.fromkeys(done, 1 if about.rounds else runs)
        left = {cell: n - counts.get(cell, 0) for cell, n in lacking.items()}
        lacking = {cell: n for cell, n in left.items() if n > 0}
    names = {variant for variant, _ in lacking}
    return [variant for variant in study.variants if variant.name in names]


def wrong_variants(study: Study, where: Target) -> list[str]:
    """Variants that had a wrong output when this host last ran their present code."""
    codes = codes_of(study)
    newest: dict[tuple[str, str], bool] = {}
    for run in where.runs_of_host(study):
        of_run: dict[tuple[str, str], bool] = {}
        for row in run.rows:
            if run.about.is_fresh(row.variant, codes.get(row.variant)) and row.status != "skipped":
                of_run[row.cell] = of_run.get(row.cell, False) or row.status == "failed"
        newest = {**of_run, **newest}
    return sorted({variant for (variant, _), is_wrong in newest.items() if is_wrong})


def lacks_captures(
    study: Study, where: Target, grid: str, provision: Provision, kinds: Sequence[str]
) -> bool:
    """Whether a variant that can be profiled here lacks a capture of its current source."""
    if not provision.gpus or grid == "smoke":
        return False
    codes = codes_of(study)
    taken = {
        (one.about.kind, name)
        for one in read_captures(where.folder / study.name)
        for name, captured in one.about.variants.items()
        if captured.source_sha256 == codes.get(name)
    }
    for variant in study.variants:
        captured = study.captured_of(variant)
        has_case = captured and captured.case in {case.id for case in variant.in_grid(grid)}
        if not (variant.on_gpu and has_case and provision.unmet(variant) is None):
            continue
        if any((kind, variant.name) not in taken for kind in kinds if kind in variant.captures):
            return True
    return False


def with_companions(study: Study, variants: Sequence[Variant]) -> list[Variant]:
    """`variants` and the companions of each, in the order of study.yaml."""
    names = {other.name for variant in variants for other in study.companions(variant.name)}
    return [variant for variant in study.variants if variant.name in names]


def to_measure(study: Study, wanted: Sequence[Variant], provision: Provision) -> list[Variant]:
    """`wanted`, and the companions of those that can run here."""
    runnable = [variant for variant in wanted if provision.unmet(variant) is None]
    names = {variant.name for variant in (*wanted, *with_companions(study, runnable))}
    return [variant for variant in study.variants if variant.name in names]


@dataclass(frozen=True)
class Plan:
    """One run of one study: its variants, grid and target, and the names of the variants that were
    asked for, none for all. Its digest names its journal."""

    study: Study
    variants: tuple[Variant, ...]
    grid: Grid
    where: Target
    asked: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Changes with anything that invalidates the rounds of an interrupted run."""
        parts = {
            "grid": asdict(self.grid),
            "sources": {v.name: fingerprint(self.study, v) for v in self.variants},
            "method": METHOD_VERSION,
            "roles": {v.name: [v.role, v.host_work] for v in self.variants},
            "cases": {
                v.name: [
                    [c.id, c.metrics, c.samples, c.visits, c.every, c.warm]
                    for c in v.in_grid(self.grid.name)
                ]
                for v in self.variants
            },
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def results(self) -> Path:
        """Folder of the study's results on this machine."""
        return self.where.folder / self.study.name

    @property
    def journals(self) -> Path:
        """Folder of the journals of the study on this machine."""
        return BUILD / "rounds" / self.where.machine / self.study.name

    @property
    def journal(self) -> Path:
        """Folder of the finished rounds, until the run is published."""
        return self.journals / f"{self.grid.name}-{self.where.host}-{self.digest}"


def plan_pending(
    study: Study, grid: Grid, where: Target, provision: Provision, runs: int = 1
) -> Plan | None:
    """The plan of the variants that lack fresh samples of `runs` runs; None if none does."""
    lacking = pending(study, where, grid.name, provision, runs)
    if not lacking:
        return None
    is_all = len(lacking) == len([v for v in study.variants if v.in_grid(grid.name)])
    asked = () if is_all else tuple(variant.name for variant in lacking)
    return Plan(study, tuple(to_measure(study, lacking, provision)), grid, where, asked)


def plan_again(study: Study, grid: Grid, where: Target, variant: str) -> Plan:
    """The plan of a variant again, together with its baselines."""
    return Plan(study, tuple(study.shown_again(variant)), grid, where, (variant,))


def plans(
    study: Study, grid: Grid, where: Target, provision: Provision, runs: int = 1
) -> Iterator[Plan]:
    """Every plan that a command can ask for now: pending variants, and each variant again."""
    if pending_now := plan_pending(study, grid, where, provision, runs):
        yield pending_now
    for variant in study.variants:
        yield plan_again(study, grid, where, variant.name)
