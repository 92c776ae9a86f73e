"""The configuration of a run: config/config.yaml with overrides from the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis import ROOT
from analysis.base.errors import FieldError, require_known
from analysis.base.schema import check, read_yaml, with_types
from analysis.study import Study, discover

CONFIG_FILE = ROOT / "config" / "config.yaml"
BUILD = ROOT / "build"
FOLDERS = ("nvcc", "libfabric")
"""Keys whose values are paths."""


@dataclass(frozen=True)
class Grid:
    """Measurement effort: rounds, samples per cell, and the seconds those samples may take."""

    name: str
    rounds: int
    samples: int
    sample_budget_s: float


@dataclass(frozen=True)
class Machine:
    """A kind of node of a cluster, measured under this name in so many runs, each on a node of its
    own; `mem_mb` is asked for in MB."""

    name: str
    partition: str | None = None
    constraint: str | None = None
    gpus: int = 0
    runs: int = 1
    mem_mb: int = 16_000


@dataclass(frozen=True)
class Config:
    """`studies` are those to measure, `known` all there are."""

    studies: Mapping[str, Study]
    known: Mapping[str, Study]
    grid: Grid
    machine: str
    gpus: tuple[int | str, ...]
    shared_gpu: str
    busy: str
    nvcc: str
    arch: str
    round_limit_s: float
    managed: bool
    libfabric: str
    machines: tuple[Machine, ...] = ()

    @property
    def results(self) -> Path:
        """Where measured results go; the smoke grid never touches the committed ones."""
        return BUILD / "smoke" / "results" if self.grid.name == "smoke" else ROOT / "results"


def load_config(overrides: Mapping[str, Any] | None = None) -> Config:
    """Load config.yaml, apply `overrides` (Snakemake's whole config is accepted), and check it.

    FieldError for the first invalid key.
    """
    data = {**read_yaml(CONFIG_FILE), **with_types(overrides or {}, "config")}
    check(data, "config", "config")
    studies = discover()
    for name in data["studies"]:
        require_known("config: studies", name, sorted(studies))
    chosen = {name: studies[name] for name in data["studies"]} or studies
    grid = Grid(name=data["grid"], **data["grids"][data["grid"]])
    return Config(
        studies=chosen,
        known=studies,
        grid=grid,
        machine=data["machine"],
        gpus=tuple(data["gpu"]) if isinstance(data["gpu"], list) else (data["gpu"],),
        shared_gpu=data["shared_gpu"],
        busy=data["busy"],
        nvcc=data["nvcc"],
        arch=data["arch"],
        round_limit_s=data["round_limit_s"],
        managed=data["managed"],
        libfabric=data["libfabric"],
        machines=_machines(data["machines"]),
    )


def _machines(listed: Sequence[Mapping[str, Any]]) -> tuple[Machine, ...]:
    machines = tuple(Machine(**entry) for entry in listed)
    names = [machine.name for machine in machines]
    if len(set(names)) < len(names):
        raise FieldError("config: machines", "names that differ from each other", names)
    return machines


def changed(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Those of `overrides` that differ from config.yaml and say nothing of a machine's folders."""
    defaults = read_yaml(CONFIG_FILE)
    return {
        key: value
        for key, value in with_types(overrides, "config").items()
        if value != defaults.get(key) and key not in FOLDERS
    }
