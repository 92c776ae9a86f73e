"""Names of machines on pages, from their descriptions."""

from typing import Any

import pytest

from analysis.site.facts.inputs import machine_names

H100, H200, ADA = "NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA RTX 6000 Ada Generation"


@pytest.mark.parametrize(
    ("gpus", "names"),
    [
        # A name is the model of the GPU.
        ({"a": H100, "b": "NVIDIA A100-SXM4-80GB"}, ["H100", "A100"]),
        ({"box": "NVIDIA GeForce RTX 4090"}, ["GeForce RTX 4090"]),
        ({"box": (H200, 2), "other": H200}, ["2 × H200", "H200"]),
        ({"box": "Synthetic GPU", "none": None}, ["box", "none"]),
        # Text with a meaning in Markdown, HTML or a template.
        ({"box": "NVIDIA <b>H200</b>", "other": "NVIDIA {{ 7 }}"}, ["box", "other"]),
        # Longer names distinguish machines.
        ({"a": H100, "b": "NVIDIA H100 PCIe", "c": H200}, ["H100 80GB", "H100 PCIe", "H200"]),
        # An ambiguous name is used for none.
        ({"one": "NVIDIA RTX 6000", "other": ADA}, ["one", "RTX 6000 Ada"]),
        ({"a": H200, "b": H200}, ["a", "b"]),
        # No machine has the name of another machine's folder.
        ({"H200": None, "box": H200}, ["H200", "box"]),
    ],
)
def test_names_distinguish_machines(gpus: dict[str, Any], names: list[str]) -> None:
    described = {
        name: {"gpu": gpu[0], "gpus": gpu[1]} if isinstance(gpu, tuple) else {"gpu": gpu}
        for name, gpu in gpus.items()
    }
    assert [*machine_names(described).values()] == names
