"""Links between GPUs, and peers among them."""

from __future__ import annotations

import pynvml
import pytest

from analysis.base.gpu import open_gpus
from analysis.measure.topology import apart, topology
from analysis.site.pages.machines import described_facts
from tests.nvml import Device, devices, install
from tests.synthetic import host_of


def test_one_gpu_has_no_topology(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, devices(2))
    with open_gpus([1]) as gpus:
        assert topology(gpus) == {}
        assert apart(gpus) == ()


def test_every_pair_has_its_links_its_path_and_its_access(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, devices(3), can_access=lambda i, j: (i, j) != (2, 1))
    with open_gpus([0, 1, 2]) as gpus:
        found = topology(gpus)
        assert apart(gpus) == ((1, 2),)
    assert found == {
        "peer_access": {"0-1": True, "0-2": True, "1-2": False},  # both ways, or not at all
        "nvlinks": {"0-1": 2, "0-2": 2, "1-2": 2},
        "pcie_path": dict.fromkeys(("0-1", "0-2", "1-2"), "several NUMA nodes"),
    }
    host = host_of({"gpu": "NVIDIA H200", "gpus": 3, **found})
    facts = described_facts({"nvidia-h200-x3": host.described()})
    assert facts["peer access, 1-2"] == ["no"]
    assert facts["NVLinks, 0-1"] == ["2"]
    assert facts["GPU NUMA nodes"] == ["unknown, unknown, unknown"]


def test_links_without_a_switch_count_for_the_gpu_they_lead_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends = [Device(index).bus_id for index in range(3)]
    first = Device(0, links=[ends[1], ends[1], ends[2], None])
    second = Device(1, links=[ends[0], ends[0], None, None])
    third = Device(2, links=[ends[0], None, None, None])
    install(monkeypatch, [first, second, third])
    with open_gpus([0, 1, 2]) as gpus:
        assert topology(gpus)["nvlinks"] == {"0-1": 2, "0-2": 1, "1-2": 0}


def test_unreadable_values_are_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    install(monkeypatch, devices(2, links=()))
    monkeypatch.setattr(pynvml, "nvmlDeviceGetTopologyCommonAncestor", refuse)
    with open_gpus([0, 1]) as gpus:
        found = topology(gpus)
    assert (found["nvlinks"], found["pcie_path"]) == ({"0-1": None}, {"0-1": None})
