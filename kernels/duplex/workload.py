"""Scattered pieces in, and as many bytes out."""

from __future__ import annotations

from typing import Any

from analysis.api.measure import Operation
from kernels.common.moves.layout import GUARD, Side
from kernels.common.moves.moving import OnHost
from kernels.common.moves.workload import Workload as Pieces


class Workload(Pieces):
    """The pieces that move in have the same random order on both sides, without gaps, so that one
    copy moves all of them, too. The bytes that move out are one piece."""

    takes_cpu_time = False
    is_listed = True

    def sides(self) -> tuple[Side, Side]:
        on_host, _ = super().sides()
        side = Side(on_host.size, on_host.count, on_host.size, self._rng.permutation(on_host.count))
        return side, side

    def moving(self, kind: str, module: Any) -> Operation:
        landing = self.host(kind, "out", self.on_host.image_bytes)
        device, source = self.device("there"), self.device_source("out")
        method = self.method(
            module,
            self.source(kind, "there"),
            device,
            landing=landing.pointer + GUARD,
            source=source.pointer + GUARD,
        )
        out = OnHost(self.on_host, landing, self.payload("out"), self.landed())
        return self.made(method, [self.arriving(device, self.payload("there")), out])
