"""Whether this machine meets the needs of a variant, and if not, why."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass

from analysis.config import Config
from analysis.errors import FieldError
from analysis.gpu import Gpu
from analysis.study import Variant
from analysis.toolchain.compilers import Toolchain
from analysis.toolchain.libfabric import MISSING


@dataclass(frozen=True)
class Provision:
    """What this machine provides: its GPU, if any, the CUDA version that modules are built with,
    whether the configuration allows managed memory, and whether libfabric is available."""

    gpu: Gpu | None
    cuda: str | None
    managed: bool = False
    libfabric: bool = False

    @classmethod
    def of(cls, gpu: Gpu | None, toolchain: Toolchain, config: Config) -> Provision:
        """What is available on this machine, as far as the configuration allows its use."""
        return cls(gpu, toolchain.version, config.managed, toolchain.libfabric is not None)

    def unmet(self, variant: Variant) -> str | None:
        """The reason why `variant` cannot run here, or None. FieldError for an unknown need."""
        # All needs are checked, so that an unmet one does not hide a misspelt one.
        reasons = [self._unmet(need, variant) for need in variant.needs]
        return next(filter(None, reasons), None)

    def _unmet(self, need: str, variant: Variant) -> str | None:
        match re.fullmatch(
            r"(gpu)|sm_(\d+)[af]?|cuda>=(\d+)\.(\d+)|(torch)|(managed)|(libfabric)", need
        ):
            case None:
                expected = "gpu, sm_<NN>, cuda>=<X.Y>, torch, managed or libfabric"
                raise FieldError(f"variant {variant.name}: needs", expected, need)
            case re.Match() as found:
                gpu, sm, major, minor, module, managed, libfabric = found.groups()
        if module:
            return None if importlib.util.find_spec(module) else f"{module} is not installed"
        if managed:
            return None if self.managed else "managed memory is opt-in: managed=true"
        if libfabric:
            return None if self.libfabric else MISSING
        if gpu or sm:
            if self.gpu is None:
                return "no GPU"
            if sm and int(self.gpu.arch.removeprefix("sm_")) < int(sm):
                return f"needs sm_{sm}, the GPU is {self.gpu.arch}"
            return None
        have = tuple(map(int, self.cuda.split("."))) if self.cuda else ()
        if have < (int(major), int(minor)):
            return f"needs CUDA {major}.{minor}, modules are built with {self.cuda}"
        return None
