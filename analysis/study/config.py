"""The configuration of a run: config/config.yaml with overrides from the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Strict

from analysis import BUILD, ROOT
from analysis.base.errors import FieldError, require_known
from analysis.base.keys import (
    Boolean,
    Count,
    Keys,
    Maybe,
    Natural,
    Positive,
    Sentence,
    Text,
    Unique,
    adapter,
    key,
    only,
    read,
    text_as,
)
from analysis.base.schema import read_yaml
from analysis.study import Study, discover

CONFIG_FILE = ROOT / "config" / "config.yaml"
FOLDERS = ("nvcc", "libfabric")
"""Keys whose values are paths."""

RESERVED = "published"
"""A folder of results that are of no machine."""

MachineName = Annotated[
    Text,
    Field(pattern="^[a-z0-9][a-z0-9-]*$", max_length=100, title="machine name"),
    only(lambda name: name != RESERVED, f"anything but {RESERVED!r}"),
]


def _with_indices(value: Any) -> Any:
    """`value` with indices as numbers; on a command line they are text."""
    if isinstance(value, list | tuple):
        return [_with_indices(part) for part in value]
    return int(value) if re.fullmatch("-?[0-9]+", str(value)) else value


def _is_gpu(value: object) -> bool:
    if isinstance(value, str):
        return value.startswith(("GPU-", "MIG-"))
    return type(value) is int and value >= 0


def _is_gpus(value: object) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and len(set(map(str, value))) == len(value) and all(map(_is_gpu, value))
    return _is_gpu(value)


GpuNames = Annotated[
    int | str | tuple[int | str, ...],
    only(_is_gpus, "a whole number of at least 0, a UUID like GPU-… or MIG-…, or a list of these"),
    BeforeValidator(_with_indices),
    Field(title="whole number of at least 0, text like GPU-… or MIG-…, or a list of these"),
]


@dataclass(frozen=True, kw_only=True)
class Grid(Keys):
    """Measurement effort."""

    name: str = ""
    rounds: Annotated[int, Strict(), Field(ge=1, le=64), text_as(int)] = key(
        "Independent processes, each of which measures every cell once in random order."
    )
    samples: Annotated[int, Strict(), Field(ge=1, le=20), text_as(int)] = key(
        "Samples per cell and metric in one round."
    )
    sample_budget_s: Positive = key(
        "Time limit for the samples of a cell. A slower cell takes fewer, at least one."
    )


@dataclass(frozen=True)
class Grids(Keys):
    smoke: Grid = key("A trial of each variant's headline case; its results stay under build/.")
    default: Grid = key("The grid that measures a machine.")
    full: Grid = key("The default grid, and the cases that study.yaml keeps for this one.")


@dataclass(frozen=True)
class Machine(Keys):
    """A kind of node of a cluster, measured under this name."""

    name: MachineName = key("Folder under results/ to write to.")
    partition: Maybe[Sentence] = key(
        "Slurm's partition that has these nodes; by default that of the cluster.", None
    )
    constraint: Maybe[Sentence] = key(
        "The feature that distinguishes these nodes from others of the partition.", None
    )
    gpus: Natural = key(
        "GPUs of a node to ask for where a study needs one; none are asked for where it is 0.", 0
    )
    runs: Annotated[int, Strict(), Field(ge=1, le=5), text_as(int)] = key(
        "Number of runs to measure, each on a different node.", 1
    )
    mem_mb: Count = key("Memory to ask for, in MB.", 16_000)


@dataclass(frozen=True, kw_only=True)
class Settings(Keys):
    """The keys of config.yaml; all are required."""

    study_names: Unique[Text] = key(
        "The studies to build and measure; all of them if the list is empty.", alias="studies"
    )
    grid_name: Literal["smoke", "default", "full"] = key(
        "The grid to run, one of those below. Results of `smoke` stay under build/.", alias="grid"
    )
    grids: Grids = key("The effort of each grid.")
    machine: MachineName = key("Folder under results/ to write to; `auto` names it after the GPU.")
    gpu: GpuNames = key(
        "Index or UUID of the GPU to measure on, or a list of those of several GPUs of one kind. A"
        " study takes as many from the front as it needs. Without a list, a study of several GPUs"
        " also takes free ones of the same kind, and its results are those of another machine, such"
        " as nvidia-h200-x2."
    )
    shared_gpu: Literal["refuse", "record"] = key(
        "What to do if another process uses the GPU: `refuse` to measure, or measure and `record`"
        " it."
    )
    runs: Count = key(
        "Fresh runs that every case needs. One command makes one run of the studies that lack some."
    )
    busy: Literal["wait", "refuse"] = key(
        "What to do while this machine is measured already, by anybody and from any checkout:"
        " `wait` until that has ended, or `refuse`."
    )
    published: Unique[MachineName] = key(
        "Machines whose results must be whole: if the publication check finds a fault of theirs,"
        " the site is not built. The home page lists faults of other machines."
    )
    nvcc: Sentence = key(
        "Path of nvcc; `auto` uses the locked one, else CUDACXX, CUDA_HOME or PATH."
    )
    arch: Annotated[Text, Field(pattern="^(auto|sm_[0-9]{2,3}[af]?)$")] = key(
        "Architecture to build for; `auto` is that of the GPU, or sm_90 without a GPU."
    )
    round_limit_s: Positive = key("A round that takes longer is ended; finished rounds are kept.")
    managed: Boolean = key(
        "Whether variants may use managed memory, at most a quarter of the GPU's free memory."
    )
    libfabric: Sentence = key(
        "Folder with libfabric's headers (include/rdma) and library (lib), or a libfabric-dev"
        " package extracted with `dpkg -x`; `auto` uses an installed one. If there is none,"
        " variants that need it are skipped."
    )
    machines: tuple[Machine, ...] = key(
        "Kinds of nodes of a cluster that `--profile workflow/profiles/slurm` measures. The list is"
        " in config/machines.yaml."
    )


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """The settings and their studies: `studies` to measure, `known` for all."""

    studies: Mapping[str, Study]
    known: Mapping[str, Study]
    grid: Grid

    @property
    def gpus(self) -> tuple[int | str, ...]:
        return self.gpu if isinstance(self.gpu, tuple) else (self.gpu,)

    @property
    def results(self) -> Path:
        """Folder of measured results; the smoke grid never changes the committed ones."""
        return BUILD / "smoke" / "results" if self.grid.name == "smoke" else ROOT / "results"


def load_config(overrides: Mapping[str, Any] | None = None) -> Config:
    """Load config.yaml, apply `overrides` (Snakemake's whole config is accepted), and check it.

    FieldError for the first invalid key.
    """
    settings = _settings(overrides or {})
    studies = discover()
    for name in settings.study_names:
        require_known("config: studies", name, sorted(studies))
    chosen = {name: studies[name] for name in settings.study_names} or studies
    names = [machine.name for machine in settings.machines]
    if len(set(names)) < len(names):
        raise FieldError("config: machines", "names that differ from each other", names)
    grid = replace(getattr(settings.grids, settings.grid_name), name=settings.grid_name)
    return Config(**vars(settings), studies=chosen, known=studies, grid=grid)


def _settings(overrides: Mapping[str, Any]) -> Settings:
    return read(Settings, {**read_yaml(CONFIG_FILE), **overrides}, "config", from_text=True)


def changed(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The `overrides` that differ from config.yaml and do not name a machine's folders."""
    default, now = (
        adapter(Settings).dump_python(
            _settings(one), mode="json", by_alias=True, exclude_defaults=True
        )
        for one in ({}, overrides)
    )
    return {
        key: value
        for key, value in now.items()
        if key in overrides and value != default[key] and key not in FOLDERS
    }
