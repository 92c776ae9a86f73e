"""Names of machines on pages, from their descriptions."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.site.facts.machine_names import machine_names

ADA = "NVIDIA RTX 6000 Ada Generation"


@pytest.mark.parametrize(
    ("gpu", "gpus", "name"),
    [
        ("NVIDIA H100 80GB HBM3", 1, "H100"),
        ("NVIDIA H200", 2, "2 × H200"),
        ("NVIDIA A100-SXM4-80GB", 1, "A100"),
        ("NVIDIA GeForce RTX 4090", None, "GeForce RTX 4090"),
        ("Synthetic GPU", 1, "box"),
        (None, None, "box"),
        # Text with a meaning in Markdown, HTML or a template.
        ("NVIDIA <b>H200</b>", 1, "box"),
        ("NVIDIA {{ 7 }}", 1, "box"),
    ],
)
def test_a_name_is_the_model_of_the_gpu(gpu: Any, gpus: Any, name: str) -> None:
    assert machine_names({"box": {"gpu": gpu, "gpus": gpus}}) == {"box": name}


@pytest.mark.parametrize(
    ("gpus", "names"),
    [
        # Longer names distinguish machines.
        (
            {"a": "NVIDIA H100 80GB HBM3", "b": "NVIDIA H100 PCIe", "c": "NVIDIA H200"},
            ["H100 80GB", "H100 PCIe", "H200"],
        ),
        # An ambiguous name is used for none.
        ({"one": "NVIDIA RTX 6000", "other": ADA}, ["one", "RTX 6000 Ada"]),
        ({"a": "NVIDIA H200", "b": "NVIDIA H200"}, ["a", "b"]),
        # No machine has the name of another machine's folder.
        ({"H200": None, "box": "NVIDIA H200"}, ["H200", "box"]),
    ],
)
def test_names_distinguish_machines(gpus: dict[str, Any], names: list[str]) -> None:
    assert [*machine_names({name: {"gpu": gpu} for name, gpu in gpus.items()}).values()] == names
