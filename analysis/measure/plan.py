"""Plans of measurements on this machine: variants with cases that lack a fresh sample."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from analysis import BUILD
from analysis.base.errors import HotpathError
from analysis.base.gpu import Gpu
from analysis.measure.machine import slug
from analysis.measure.needs import Provision
from analysis.results.store import METHOD_VERSION
from analysis.results.store.results import load_variant
from analysis.study import GRIDS, Study, Variant
from analysis.study.config import Config, Grid
from analysis.study.source import fingerprint

PUBLISHING = "publishing"
"""In a journal: all changes of a finished run, ready to be put into the results."""
RESULTS = "results"
"""In PUBLISHING: the changed files, by their paths below the folder of results."""


@dataclass(frozen=True)
class Target:
    """Where the results of this machine go: <root>/<machine>/<study>/<variant>.csv."""

    root: Path
    machine: str

    def samples_files(self, study: Study) -> dict[str, Path]:
        """Existing files of the study's variants, by variant."""
        paths = {v.name: self.folder / study.name / f"{v.name}.csv" for v in study.variants}
        return {name: path for name, path in paths.items() if path.exists()}

    @property
    def folder(self) -> Path:
        """The folder of this machine's results."""
        return self.root / self.machine


def target(config: Config, gpus: Sequence[Gpu]) -> Target:
    """The configured machine, else one named after the GPU and how many there are of it, else a
    folder under build/.

    Results of a machine without a GPU are kept only if the configuration names the machine.
    """
    if config.machine != "auto":
        return Target(config.results, config.machine)
    if gpus:
        several = f"-x{len(gpus)}" if len(gpus) > 1 else ""
        return Target(config.results, f"{slug(gpus[0].name)}{several}")
    return Target(config.results if config.grid.name == "smoke" else BUILD / "unnamed", "unnamed")


def pending(study: Study, where: Target, grid: str, provision: Provision) -> list[Variant]:
    """Variants with a case in `grid` that has neither a fresh sample nor a reason, still valid, for
    being skipped."""
    return [
        v
        for v in study.variants
        if v.in_grid(grid) and _is_pending(study, v, where, grid, provision)
    ]


def _is_pending(
    study: Study, variant: Variant, where: Target, grid: str, provision: Provision
) -> bool:
    path = _results_file(study, variant, where, grid)
    if not path.exists():
        return True
    try:
        results = load_variant(path)
    except HotpathError:
        return False  # nothing can be added to them, see refuse_damaged
    runs = results.run_provenance()
    fresh = {
        run
        for run in results.fresh_runs(fingerprint(study, variant))
        if GRIDS.index(runs[run].get("grid", "default")) >= GRIDS.index(grid)
    }
    reason = provision.unmet(variant)
    # A need that was not met then may be met now. What a workload skipped stays skipped.
    standing = {run for run in fresh if runs[run].get("unmet") == reason}
    done = {
        sample.case
        for sample in results.samples
        if sample.run in fresh and (sample.status != "skipped" or sample.run in standing)
    }
    return not done >= {case.id for case in variant.in_grid(grid)}


def refuse_damaged(study: Study, where: Target, grid: str) -> None:
    """HotpathError where results of the study on this machine are damaged: nothing can be added to
    them, and the tables would leave the study out."""
    for variant in study.variants:
        path = _results_file(study, variant, where, grid)
        try:
            if path.exists():
                load_variant(path)
        except HotpathError as error:
            raise HotpathError(
                f"{error}; before {study.name} is measured, restore it, or move all files"
                f" {variant.name}.* away from {path.parent}"
            ) from error


def _results_file(study: Study, variant: Variant, where: Target, grid: str) -> Path:
    """The samples of a variant, as they will be once what is half published is completed."""
    name = f"{where.machine}/{study.name}/{variant.name}.csv"
    staged = (folder / RESULTS / name for folder in half_published(where, grid))
    return next((path for path in staged if path.exists()), where.root / name)


def half_published(where: Target, grid: str) -> list[Path]:
    """Folders of results, made by runs of any study that were stopped while publishing them."""
    return sorted(_journals(where).glob(f"*/{grid}-*/{PUBLISHING}"))


def leftovers(study: Study, where: Target, grid: str) -> list[Path]:
    """Half-published journals that the next run of the study completes or removes first."""
    folder = _journals(where) / study.name
    return sorted([*folder.glob(f"{grid}-*/{PUBLISHING}"), *folder.glob(f".{grid}-*")])


def _journals(where: Target) -> Path:
    return BUILD / "rounds" / where.machine


def lacks_captures(
    study: Study, where: Target, grid: str, provision: Provision, kinds: Sequence[str]
) -> bool:
    """Whether a variant that can be profiled here lacks a capture of its current source."""
    if not provision.gpus or grid == "smoke":
        return False
    for variant in study.variants:
        captured = study.captured_of(variant)
        has_case = captured and captured.case in {case.id for case in variant.in_grid(grid)}
        if not (variant.on_gpu and has_case and provision.unmet(variant) is None):
            continue
        path = _results_file(study, variant, where, grid)
        try:
            captures = load_variant(path).provenance.get("captures", {}) if path.exists() else {}
        except HotpathError:
            continue
        source = fingerprint(study, variant)
        wanted = [kind for kind in kinds if kind in variant.captures]
        if any(captures.get(kind, {}).get("source_sha256") != source for kind in wanted):
            return True
    return False


def with_companions(study: Study, variants: Sequence[Variant]) -> list[Variant]:
    """`variants` and the companions of each, in the order of study.yaml."""
    names = {other.name for variant in variants for other in study.companions(variant.name)}
    return [variant for variant in study.variants if variant.name in names]


@dataclass(frozen=True)
class Plan:
    """One run of one study: its variants, grid and target. Its digest names its journal."""

    study: Study
    variants: tuple[Variant, ...]
    grid: Grid
    where: Target

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
    def journal(self) -> Path:
        """Folder of the finished rounds, until they are published."""
        return _journals(self.where) / self.study.name / f"{self.grid.name}-{self.digest}"


def plans(study: Study, grid: Grid, where: Target, provision: Provision) -> list[Plan]:
    """Every plan that a command can ask for now: pending variants, and each variant again."""
    chosen = with_companions(study, pending(study, where, grid.name, provision))
    again = [study.shown_again(variant.name) for variant in study.variants]
    return [Plan(study, tuple(variants), grid, where) for variants in (chosen, *again) if variants]
