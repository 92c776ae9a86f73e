"""A variant of unpack in Python."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from analysis.toolchain.modules import load_python
from tests.repository import STUDIES

UNPACK = STUDIES["unpack"]
WORKLOADS = load_python(UNPACK, "workload")
ROOM = 8


class HostModule:
    """Stands in for a built variant: a loop over the blocks on the host."""

    def __init__(self, room: int = ROOM) -> None:
        self.block = WORKLOADS.block_type(room)
        self.plans: list[np.ndarray] = []

    def bind(self, blocks: np.ndarray, of_chunks: Any, *ends: int) -> Any:
        assert sum(of_chunks) * self.block.itemsize == blocks.nbytes
        bounce, bounce_bytes, dst, dst_bytes = ends
        viewed = blocks.view(self.block)
        assert (viewed["bounce"] == bounce).all() and (viewed["dst"] == dst).all()
        self.plans.append(viewed)
        calls: list[str] = []

        class Bound:
            def launch(self, stream: int) -> None:
                for block in viewed:
                    for src_off, length, at in block["descriptors"][: block["count"]].tolist():
                        assert src_off + length <= bounce_bytes and at + length <= dst_bytes
                        ctypes.memmove(dst + at, bounce + src_off, length)

            def waits(self) -> bool:
                return True

            def must_get_ready(self) -> bool:
                return True

            def get_ready(self) -> None:
                calls.append("ready")

            def parts(self, stream: int) -> dict[str, float]:
                return {"launch_time": 1.0, "wait_time": 2.0}

        bound = Bound()
        bound.calls = calls  # type: ignore[attr-defined]
        return bound
