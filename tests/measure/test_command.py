"""The command that provenance names, and where samples of a nameless machine are."""

from __future__ import annotations

from analysis.config import CONFIG_FILE
from analysis.measure.__main__ import command_of
from analysis.schema import read_yaml


def test_a_command_is_quoted_and_holds_only_what_differs_from_the_defaults() -> None:
    defaults = read_yaml(CONFIG_FILE)
    assert command_of(["calls"], None, defaults) == "python -m analysis.measure calls"
    asked = defaults | {"machine": "my-box", "nvcc": "/opt/cuda/bin/nvcc", "libfabric": "/home/me"}
    assert command_of(["calls"], "python", asked) == (
        'python -m analysis.measure calls --variant python --config \'{"machine": "my-box"}\''
    )
