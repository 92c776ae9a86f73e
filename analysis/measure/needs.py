"""Whether this machine meets the needs of a variant, and if not, why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analysis.base.gpu import Gpu
from analysis.measure.topology import Pair, apart
from analysis.study import Variant
from analysis.study.config import Config
from analysis.study.keys import NEED
from analysis.toolchain.arch import require_supported
from analysis.toolchain.compilers import find_toolchain
from analysis.toolchain.libfabric import MISSING, find_libfabric
from analysis.toolchain.packages import PACKAGES


@dataclass(frozen=True)
class Provision:
    """Provisions of this machine: its GPUs and the CUDA version for modules; whether the
    configuration allows managed memory and libfabric is installed; and the pairs of GPUs that
    cannot access each other's memory."""

    gpus: Sequence[Gpu]
    cuda: str | None
    managed: bool = False
    libfabric: bool = False
    apart: tuple[Pair, ...] = ()

    @classmethod
    def of(cls, gpus: Sequence[Gpu], config: Config) -> Provision:
        """Resources of this machine that the configuration allows to use. UnsupportedGpu if the
        compiler cannot build for its GPU.

        Only variants for GPUs need a CUDA version, so that without one no compiler is looked for.
        """
        cuda = None
        if gpus:
            toolchain = find_toolchain(config.nvcc)
            require_supported(config.arch, gpus[0].arch, toolchain)
            cuda = toolchain.version
        has_libfabric = find_libfabric(config.libfabric) is not None
        return cls(gpus, cuda, config.managed, has_libfabric, apart(gpus))

    def unmet(self, variant: Variant) -> str | None:
        """The reason why `variant` cannot run here, or None."""
        reasons = (self._unmet(need, variant) for need in variant.needs)
        return next(filter(None, reasons), None)

    def _unmet(self, need: str, variant: Variant) -> str | None:
        found = NEED.fullmatch(need)
        assert found is not None, "study.yaml is checked"
        gpu, sm, major, minor, package, managed, libfabric, peers = found.groups()
        if package:
            return PACKAGES[package].unmet
        if managed:
            return None if self.managed else "managed memory is opt-in: managed=true"
        if libfabric:
            return None if self.libfabric else MISSING
        if gpu or sm or peers:
            if not self.gpus:
                return "no GPU"
            if sm and int(self.gpus[0].arch.removeprefix("sm_")) < int(sm):
                return f"needs sm_{sm}, the GPU is {self.gpus[0].arch}"
            return self._not_peers(variant.gpus)
        have = tuple(map(int, self.cuda.split("."))) if self.cuda else ()
        if have < (int(major), int(minor)):
            return f"needs CUDA {major}.{minor}, modules are built with {self.cuda}"
        return None

    def _not_peers(self, wanted: int) -> str | None:
        """The reason why the first `wanted` GPUs cannot access each other, or None."""
        if len(self.gpus) < wanted:
            setting = f"gpu={list(range(wanted))}"
            found = len(self.gpus)
            return f"needs {wanted} free GPUs of one kind, got {found}; {setting} would name them"
        for i, j in self.apart:
            if j < wanted:
                two = f"GPU {self.gpus[i].index} and GPU {self.gpus[j].index}"
                return f"{two} cannot access each other's memory"
        return None


def in_use(gpus: Sequence[Gpu], variants: Iterable[Variant]) -> tuple[Gpu, ...]:
    """The first of `gpus`, as many as any of `variants` needs."""
    return tuple(gpus[: max((variant.gpus for variant in variants), default=1)])
