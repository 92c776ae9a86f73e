"""Where each study is measured: its GPUs, the needs that are met there, and its results' folder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from analysis import BUILD
from analysis.base.gpu import Gpu, free_twins
from analysis.measure.machine import host_id, peer_access, slug
from analysis.results.store.keys import UNKNOWN_HOST
from analysis.results.store.runs import Refuse, Run, ignore, read_runs
from analysis.study import Study, Variant
from analysis.study.config import Config
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
