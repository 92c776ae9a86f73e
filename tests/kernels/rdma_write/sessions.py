"""Servers with connected clients, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from analysis.measure.cores import cores
from analysis.toolchain.modules import load_python
from tests.repository import STUDIES

STUDY = STUDIES["rdma_write"]
WORKLOAD: Any = load_python(STUDY, "workload")
PEERS: Any = load_python(STUDY, "peers")
NAMES = STUDY.variant_names


def setup(provider: str = "shm", timeout_s: float = 5, idle_s: float = 10) -> dict[str, Any]:
    name = WORKLOAD.PROVIDERS.get(provider, provider)
    return {"provider": name, "timeout_s": timeout_s, "idle_s": idle_s}


def some_cores(count: int) -> list[int]:
    """`count` cores, with repetitions on machines with fewer: slow, but correct."""
    here = cores()
    return [here[i % len(here)] for i in range(count)]


def session(peers: Any, module: Path, *, devices: int = 2, **more: Any) -> Any:
    settings = setup(**{k: more.pop(k) for k in ("provider", "timeout_s", "idle_s") if k in more})
    sizes = {"devices": devices, "endpoints": 2, "page_bytes": 8, "pages": 50} | more
    both = some_cores(2 * devices)
    return PEERS.session(peers, module, settings, both[:devices], both[devices:], **sizes)
