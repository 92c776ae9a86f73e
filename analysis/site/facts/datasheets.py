"""Published properties of GPUs, and which of two machines they let one expect to be faster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

LINK: Final = "link"
CHIP: Final = "chip"
MEMORY: Final = "memory"
HOST: Final = "host"
SOFTWARE: Final = "software"
"""What bounds a property: the link to host memory, the GPU's chip, its memory, the host's CPU and
memory, or the software alone."""


@dataclass(frozen=True)
class Datasheet:
    """Published rate of a GPU's memory in B/s, its kind, and the address of the datasheet."""

    memory: str
    memory_rate: float
    source: str


DATASHEETS: Final[Mapping[str, Datasheet]] = {
    "NVIDIA H100 80GB HBM3": Datasheet(
        "HBM3", 3.35e12, "https://www.nvidia.com/en-us/data-center/h100/"
    ),
    "NVIDIA H200": Datasheet("HBM3e", 4.8e12, "https://www.nvidia.com/en-us/data-center/h200/"),
}
"""Datasheets by the name that the driver reports."""


@dataclass(frozen=True)
class Expectation:
    """Expected `ratio` of the speeds of the second machine and the first, NaN without one, and the
    reason in words."""

    ratio: float
    reason: str


UNKNOWN: Final = Expectation(float("nan"), "")


def expectation(bound: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> Expectation:
    """The expectation for a property bound by this part; the machines are described as in
    machine.json."""
    if bound == HOST:
        return Expectation(float("nan"), "the datasheets do not describe the host")
    if bound == SOFTWARE:
        return Expectation(1.0, "the same software")
    if bound == MEMORY:
        first, second = (DATASHEETS.get(str(machine.get("gpu"))) for machine in (one, other))
        if first is None or second is None:
            return UNKNOWN
        return Expectation(
            second.memory_rate / first.memory_rate,
            f"{second.memory} instead of {first.memory}",
        )
    links = [
        (machine.get("pcie_generation"), machine.get("pcie_width")) for machine in (one, other)
    ]
    sms = [machine.get("sms") for machine in (one, other)]
    if bound == LINK and links[0] == links[1] and all(links[0]):
        return Expectation(1.0, f"both PCIe {links[0][0]}.0 x{links[0][1]}")
    same_chip = one.get("arch") == other.get("arch") and sms[0] == sms[1]
    if bound == CHIP and same_chip and sms[0]:
        return Expectation(1.0, f"both {one['arch']} with {sms[0]} SMs")
    return UNKNOWN
