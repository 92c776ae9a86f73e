"""Transfers between two processes on this machine; the client checks every byte."""

from __future__ import annotations

import atexit
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from analysis.api.measure import PythonOperation, Skip, cores
from analysis.api.study import Case, FieldError, Variant

from .peers import SHARED_MEMORY, Peers, Session, Unavailable

PROVIDERS = {"tcp": "tcp;ofi_rxm"}
"""libfabric's name of a provider, if it differs from the name in the case."""

SHARED_BYTES = 5 << 20
"""Upper bound of the space in /dev/shm of an endpoint of the shm provider."""

TIMEOUT_S = 10.0
IDLE_S = 60.0

PROFILED = {"page_bytes": 8, "provider": "shm"}
"""Cases whose time is profiled by component: those in which bytes matter least, ..."""

PROFILED_THREADS = 8
"""... with this number of threads, or as many as there are cores for."""


def sides(threads: int, available: Sequence[int]) -> tuple[list[int], list[int]]:
    """Cores of the server's and the client's threads; Skip if there are too few for both."""
    if 2 * threads > len(available):
        raise Skip(f"{threads} threads a side need {2 * threads} cores, here are {len(available)}")
    return list(available[:threads]), list(available[threads : 2 * threads])


class Workload:
    """One transfer at a time: a server and a client, started for the cell."""

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        self._constants = constants
        self._rng = rng
        self._peers = Peers()
        self._transfer: Transfer | None = None
        atexit.register(self.close)

    def close(self) -> None:
        self._end_transfer()
        self._peers.close()

    def prepare(self, case: Case) -> None:
        """Set up the parameters of `case`; Skip if this machine has too few cores."""
        provider, page = str(case["provider"]), case.number("page_bytes")
        threads = min(PROFILED_THREADS, len(cores()) // 2)
        profiled = PROFILED | {"threads": threads}
        self._is_profiled = all(case[key] == value for key, value in profiled.items())
        if page % 8 or page < 8:
            raise FieldError(f"case {case.id}: page_bytes", "a multiple of 8", page)
        self._end_transfer()
        self._sides = sides(case.number("threads"), cores())
        self._setup = {
            "provider": PROVIDERS.get(provider, provider),
            "timeout_s": TIMEOUT_S,
            "idle_s": IDLE_S,
        }
        if provider == "shm":
            self._require_shared_memory(case.number("threads"))
        max_pages = self._constants["writes" if provider == "shm" else "network_writes"]
        self._sizes: dict[str, Any] = {
            "devices": case.number("threads"),
            "endpoints": self._constants["endpoints"],
            "page_bytes": page,
            "pages": max(
                self._constants["endpoints"],
                min(max_pages, self._constants["buffer_bytes"] // page),
            ),
        }

    def _require_shared_memory(self, threads: int) -> None:
        needed = 2 * (threads * self._constants["endpoints"] + 1) * SHARED_BYTES
        free = shutil.disk_usage(SHARED_MEMORY).free
        if free < needed:
            raise Skip(f"{SHARED_MEMORY} has {free >> 20} MiB free, this needs {needed >> 20} MiB")

    def bind(self, variant: Variant, module: Any) -> Transfer:
        """Connect a client to a server; Skip if the provider is not available."""
        self._end_transfer()
        file = Path(module.__file__)
        connect = partial(Session, self._peers, file, self._setup, *self._sides, **self._sizes)
        try:
            self._transfer = Transfer(connect, self._rng, self._is_profiled)
        except Unavailable as reason:
            raise Skip(str(reason)) from None
        return self._transfer

    def _end_transfer(self) -> None:
        if self._transfer:
            self._transfer.close()
            self._transfer = None


class Transfer(PythonOperation):
    """Requests of the client, one per launch, with new random bytes, all of which are checked."""

    def __init__(
        self, connect: Callable[..., Session], rng: np.random.Generator, is_profiled: bool
    ) -> None:
        self._connect = connect
        self._session = connect()
        self._rng = rng
        self._is_profiled = is_profiled
        self._wrong = ""

    def launch(self, stream: int) -> None:
        del stream
        self._fill()

    def poison(self) -> None:
        """The client overwrites its memory before every request."""

    def check(self) -> str | None:
        return self._wrong or None

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """op_time: seconds per write, of `count` transfers. Its parts come from one more transfer,
        by a separate server that times its calls."""
        samples = {"op_time": [self._fill() for _ in range(count)]}
        if self._is_profiled:
            samples |= self._profile()
        if self._wrong:
            raise RuntimeError(self._wrong)
        return samples

    def _profile(self) -> dict[str, list[float]]:
        self._session.close()
        self._session = self._connect(profiles=True)
        self._fill()  # touches memory for the first time
        self._fill()
        parts = self._session.parts
        whole = sum(parts.values())
        without_own = whole / (whole - parts["own_time"])
        return {name: [value] for name, value in (parts | {"without_own": without_own}).items()}

    def close(self) -> None:
        self._session.close()

    def _fill(self) -> float:
        seconds, wrong = self._session.fill(int(self._rng.integers(1, 2**62)))
        self._wrong = self._wrong or wrong
        return float(seconds)
