"""Where each study is measured: its GPUs, the needs that are met there, and its results' folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from analysis import BUILD
from analysis.base.gpu import Gpu, free_twins
from analysis.measure.machine import apart, host_id, slug
from analysis.results.store.keys import UNKNOWN_HOST
from analysis.results.store.runs import Run, read_runs
from analysis.study import Study, Variant
from analysis.study.config import Config
from analysis.study.keys import NEED
from analysis.toolchain.compilers import find_toolchain, require_supported
from analysis.toolchain.libfabric import MISSING, find_libfabric
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
    libfabric: bool = False
    apart: tuple[tuple[int, int], ...] = ()

    @property
    def folder(self) -> Path:
        """The folder of this machine's results."""
        return self.root / self.machine

    def runs(self, study: Study) -> Iterator[Run]:
        """The runs of the study on this machine, newest first; bad ones are left out."""
        return read_runs(self.folder / study.name, study)

    def in_use(self, variants: Sequence[Variant]) -> tuple[Gpu, ...]:
        """The first of the GPUs, as many as any of `variants` needs, and at least one."""
        return tuple(self.gpus[: max((variant.gpus for variant in variants), default=1)])

    def unmet(self, variant: Variant) -> str | None:
        """The reason why `variant` cannot run here, or None."""
        reasons = (self._unmet(need, variant.gpus) for need in variant.needs)
        return next(filter(None, reasons), None) or unusable(variant)

    def _unmet(self, need: str, wanted_gpus: int) -> str | None:
        found = NEED.fullmatch(need)
        assert found is not None, "study.yaml is checked"
        _, sm, major, minor, package, managed, libfabric, _ = found.groups()
        if package:
            return PACKAGES[package].unmet
        if managed:
            return None if self.managed else "managed memory is opt-in: managed=true"
        if libfabric:
            return None if self.libfabric else MISSING
        if major:
            have = tuple(map(int, self.cuda.split("."))) if self.cuda else ()
            if have < (int(major), int(minor)):
                return f"needs CUDA {major}.{minor}, modules are built with {self.cuda}"
            return None
        if not self.gpus:
            return "no GPU"
        if sm and int(self.gpus[0].arch.removeprefix("sm_")) < int(sm):
            return f"needs sm_{sm}, the GPU is {self.gpus[0].arch}"
        if (got := len(self.gpus)) < wanted_gpus:
            need = f"needs {wanted_gpus} free GPUs of one kind, got {got}"
            return f"{need}; gpu={list(range(wanted_gpus))} would name them"
        for i, j in self.apart:
            if j < wanted_gpus:
                pair = f"GPU {self.gpus[i].index} and GPU {self.gpus[j].index}"
                return f"{pair} cannot access each other's memory"
        return None


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
        twins = tuple(islice(free_twins(gpus[0]), max(wanted.values(), default=1) - 1))
        several = _place(config, (*gpus, *twins)) if twins else first
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
    libfabric = find_libfabric(config.libfabric) is not None
    return Place(root, machine, host_id(gpus), gpus, cuda, config.managed, libfabric, apart(gpus))
