"""Names of machines on pages, from their descriptions."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.site.facts.machine_names import machine_names


@pytest.mark.parametrize(
    ("described", "name"),
    [
        ({"gpu": "NVIDIA H100 80GB HBM3"}, "H100"),
        ({"gpu": "NVIDIA H200", "gpus": 2}, "2 × H200"),
        ({"gpu": "NVIDIA A100-SXM4-80GB", "gpus": 1}, "A100"),
        ({"gpu": "NVIDIA GeForce RTX 4090"}, "GeForce RTX 4090"),
        ({"gpu": "H200"}, "H200"),
        ({"gpu": "NVIDIA"}, "box"),
        ({"gpu": "Synthetic GPU"}, "box"),
        ({"gpu": None}, "box"),
        ({}, "box"),
        # Text with a meaning in Markdown, HTML or a template.
        ({"gpu": "NVIDIA <b>H200</b>"}, "box"),
        ({"gpu": "NVIDIA {{ 7 }}"}, "box"),
        ({"gpu": "NVIDIA H200", "gpus": "2"}, "H200"),
    ],
)
def test_a_name_is_the_model_of_the_gpu(described: dict[str, Any], name: str) -> None:
    assert machine_names({"box": described}) == {"box": name}


def test_longer_names_distinguish_machines() -> None:
    gpus = ("NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "NVIDIA H200")
    names = machine_names({gpu.lower(): {"gpu": gpu} for gpu in gpus})
    assert list(names.values()) == ["H100 80GB", "H100 PCIe", "H200"]


def test_ambiguous_name_is_used_for_no_machine() -> None:
    ada = "NVIDIA RTX 6000 Ada Generation"
    machines = {"one": {"gpu": "NVIDIA RTX 6000"}, "other": {"gpu": ada}}
    assert machine_names(machines) == {"one": "one", "other": "RTX 6000 Ada"}
    same = {"h200-a": {"gpu": "NVIDIA H200"}, "h200-b": {"gpu": "NVIDIA H200"}}
    assert machine_names(same) == {name: name for name in same}
    # No machine has the name of another machine's folder.
    folder: dict[str, dict[str, Any]] = {"H200": {"gpu": None}, "box": {"gpu": "NVIDIA H200"}}
    assert machine_names(folder) == {"H200": "H200", "box": "box"}
