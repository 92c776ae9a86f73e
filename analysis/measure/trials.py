"""Variants bound to cases on this machine by a program, outside of a run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np

from analysis.base.errors import HotpathError
from analysis.base.gpu import Gpu, open_gpus, show_only
from analysis.measure.cores import use_cpus
from analysis.measure.machine_lock import whole_machine
from analysis.measure.needs import Provision, in_use
from analysis.measure.places import Places
from analysis.measure.rig import Bound, Rig
from analysis.study import Case, Study, Variant
from analysis.study.config import Config
from analysis.toolchain.arch import resolve_arch
from analysis.toolchain.modules import built_modules


@dataclass(frozen=True)
class Trials:
    """This machine, held for one program; `gpus` are those in use."""

    study: Study
    gpus: Sequence[Gpu]
    _provision: Provision
    _rig: Rig
    _stream: int

    def unmet(self, variant: Variant) -> str | None:
        """The reason why the variant cannot run here, or None."""
        return self._provision.unmet(variant)

    def bind(self, variant: Variant, case: Case) -> Bound:
        """The variant ready to launch, until the next call. HotpathError if it cannot run here."""
        if unmet := self.unmet(variant):
            raise HotpathError(f"{self.study.name}/{variant.name}: {unmet}")
        return self._rig.bind(variant, case, self._stream)


@contextmanager
def trials(
    study: Study, variants: Sequence[Variant], config: Config, purpose: str, seed: int = 0
) -> Iterator[Trials]:
    """Hold this machine, wait for its turn, and open the GPUs that `variants` use.

    Inputs are drawn by `seed`. HotpathError without a GPU if a variant runs on one.
    """
    with ExitStack() as stack:
        stack.enter_context(whole_machine(config.busy, purpose))
        on_gpu = any(variant.on_gpu for variant in variants)
        opened = stack.enter_context(open_gpus(config.gpus)) if on_gpu else ()
        provision = Places(config, opened).of(study).provision
        gpus = provision.gpus
        if not any(provision.unmet(variant) is None for variant in variants):
            names = f"{study.name}/{variants[0].name}"
            raise HotpathError(f"{names}: {provision.unmet(variants[0])}")
        if gpus:
            show_only(in_use(gpus, variants))
        use_cpus(gpus[0].local_cpus() if gpus else os.sched_getaffinity(0))  # as in a round
        modules = built_modules(resolve_arch(config.arch, config.gpus, config.nvcc))
        rig = Rig(study, modules, np.random.default_rng(seed), variants)
        yield Trials(study, gpus, provision, rig, _new_stream() if gpus else 0)


def _new_stream() -> int:
    from cuda.bindings import runtime as cudart  # here, as machines without a GPU lack it

    from analysis.measure.memory import cuda

    return int(cuda(cudart.cudaStreamCreate()))
