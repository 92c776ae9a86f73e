"""Where each study is measured on this machine: its GPUs, and the folder of its results."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from analysis.base.gpu import Gpu, free_twins
from analysis.measure.needs import Provision
from analysis.measure.plan import Target, target
from analysis.study import Study
from analysis.study.config import Config


class Place(NamedTuple):
    """The GPUs and packages that a study may use, and the folder of its results."""

    where: Target
    provision: Provision


class Places:
    """The places of all studies.

    A study uses the configured GPUs. If the configuration names one, a study of several also uses
    free GPUs of that kind; its results are then those of another machine, as `nvidia-h200-x2`.
    """

    def __init__(self, config: Config, gpus: Sequence[Gpu]) -> None:
        """`gpus` are the configured ones, open now; none without a GPU."""
        self.first = Place(target(config, gpus), Provision.of(gpus, config))
        self._several = self.first
        most = max((_gpus_of(study) for study in config.known.values()), default=1)
        if gpus and not isinstance(config.gpu, tuple) and most > 1:
            twins = tuple(islice(free_twins(gpus[0]), most - 1))
            if twins:
                together = (*gpus, *twins)
                self._several = Place(target(config, together), Provision.of(together, config))

    def of(self, study: Study) -> Place:
        """The place of this study."""
        return self._several if _gpus_of(study) > 1 else self.first


def _gpus_of(study: Study) -> int:
    return max((variant.gpus for variant in study.variants), default=1)
