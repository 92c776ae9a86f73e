"""How several GPUs of a machine are connected: links, paths, and access to each other's memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from typing import Any, Final

import pynvml

from analysis.base.gpu import Gpu, cuda_device

Pair = tuple[int, int]
"""Two GPUs by their places among those that are measured, the first one first."""

PATHS: Final[Mapping[int, str]] = {
    pynvml.NVML_TOPOLOGY_INTERNAL: "one board",
    pynvml.NVML_TOPOLOGY_SINGLE: "one PCIe switch",
    pynvml.NVML_TOPOLOGY_MULTIPLE: "several PCIe switches",
    pynvml.NVML_TOPOLOGY_HOSTBRIDGE: "one PCIe host bridge",
    pynvml.NVML_TOPOLOGY_NODE: "one NUMA node",
    pynvml.NVML_TOPOLOGY_SYSTEM: "several NUMA nodes",
}
"""The PCIe path between two GPUs."""


def topology(gpus: Sequence[Gpu]) -> dict[str, Any]:
    """Keys of HostKeys for several GPUs: for every pair, such as `0-1`, peer access, number of
    NVLinks and PCIe path. Empty for one GPU. A value that cannot be read is None."""
    if len(gpus) < 2:
        return {}
    pairs = list(combinations(range(len(gpus)), 2))

    def of_pairs(ask: Any) -> dict[str, Any]:
        return {f"{i}-{j}": ask(gpus[i], gpus[j]) for i, j in pairs}

    return {
        "peer_access": of_pairs(peer_access),
        "nvlinks": of_pairs(_nvlinks),
        "pcie_path": of_pairs(_path),
    }


def apart(gpus: Sequence[Gpu]) -> tuple[Pair, ...]:
    """The pairs that are known not to access each other's memory."""
    pairs = combinations(range(len(gpus)), 2)
    return tuple((i, j) for i, j in pairs if peer_access(gpus[i], gpus[j]) is False)


def peer_access(gpu: Gpu, peer: Gpu) -> bool | None:
    """Whether each of the two can access the other's memory; asked of CUDA, which has the say. None
    if it does not know one of them."""
    from cuda.bindings import driver

    devices = [cuda_device(one.pci_bus_id) for one in (gpu, peer)]
    if None in devices:
        return None
    answers = [driver.cuDeviceCanAccessPeer(*pair) for pair in (devices, devices[::-1])]
    return answers == [(driver.CUresult.CUDA_SUCCESS, 1)] * 2


def _nvlinks(gpu: Gpu, peer: Gpu) -> int | None:
    """How many NVLinks join the two, directly or over switches."""
    counts = [_links_towards(gpu, peer), _links_towards(peer, gpu)]
    known = [count for count in counts if count is not None]
    return min(known) if len(known) == len(counts) else None


def _links_towards(gpu: Gpu, peer: Gpu) -> int | None:
    """The active NVLinks of `gpu` that end at `peer` or at a switch; None if it reports none."""
    count, has_reported = 0, False
    for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
        with suppress(pynvml.NVMLError):  # fewer links than that, or one that is off
            is_active = pynvml.nvmlDeviceGetNvLinkState(gpu.handle, link)
            has_reported = True
            if is_active and _leads_to(gpu, link, peer):
                count += 1
    return count if has_reported else None


def _leads_to(gpu: Gpu, link: int, peer: Gpu) -> bool:
    remote = pynvml.nvmlDeviceGetNvLinkRemoteDeviceType(gpu.handle, link)
    if remote == pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH:
        return True
    far_end = pynvml.nvmlDeviceGetNvLinkRemotePciInfo(gpu.handle, link)
    return bool(far_end.busId == peer.pci_bus_id)


def _path(gpu: Gpu, peer: Gpu) -> str | None:
    with suppress(pynvml.NVMLError):
        return PATHS.get(pynvml.nvmlDeviceGetTopologyCommonAncestor(gpu.handle, peer.handle))
    return None


def numa_node(gpu: Gpu) -> int | None:
    """The NUMA node of the host that the GPU hangs at; None where there is but one, or unknown."""
    with suppress(OSError, ValueError):
        node = int((gpu.sysfs / "numa_node").read_text())
        return node if node >= 0 else None
    return None
