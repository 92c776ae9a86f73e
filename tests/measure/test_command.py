"""The command that provenance names, and where samples of a nameless machine are."""

from __future__ import annotations

from analysis.base.reading import read_yaml
from analysis.measure.__main__ import command_of
from analysis.study.config import CONFIG_FILE


def test_command_is_quoted_and_omits_defaults() -> None:
    defaults = read_yaml(CONFIG_FILE)
    assert command_of(["calls"], None, defaults) == "python -m analysis.measure calls"
    asked = defaults | {"machine": "my-box", "nvcc": "/opt/cuda/bin/nvcc", "libfabric": "/home/me"}
    assert command_of(["calls"], "python", asked) == (
        'python -m analysis.measure calls --variant python --config \'{"machine": "my-box"}\''
    )
