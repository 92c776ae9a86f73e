"""The configuration of a run: config/config.yaml with overrides from the command line."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from analysis import BUILD, ROOT
from analysis.base.errors import refuse_repeats, require_known
from analysis.base.keys import KEYS, Count, Natural, Positive, Sentence, Unique, expects, only, read
from analysis.base.reading import read_yaml
from analysis.study import GRIDS, Study, discover
from analysis.study.keys import Grid as GridName

CONFIG_FILE = ROOT / "config" / "config.yaml"
MachineName = Annotated[
    str,
    Field(pattern="^[a-z0-9][a-z0-9-]*$", max_length=100, title="machine name"),
    only(lambda name: name != "published", "anything but 'published'"),
]
_Gpu = Natural | Annotated[str, Field(pattern="^GPU-")]
GpuNames = Annotated[
    _Gpu | Annotated[Unique[_Gpu], Field(min_length=1)],
    expects("a whole number of at least 0, a UUID like GPU-…, or a list of these"),
    Field(title="whole number of at least 0, text like GPU-…, or a list of these"),
]


@dataclass(frozen=True, kw_only=True, config=KEYS)
class GridKeys:
    """Measurement effort."""

    rounds: Annotated[int, Field(ge=1, le=64)]
    """Independent processes, each of which measures every cell once, in random order."""
    samples: Annotated[int, Field(ge=1, le=20)]
    """Samples per cell and metric in one round."""
    sample_budget_s: Positive
    """Time limit for the samples of a cell. A slower cell takes fewer, at least one."""


@dataclass(frozen=True, kw_only=True, config=KEYS)
class Machine:
    """A kind of node of a cluster, measured under this name."""

    name: MachineName
    """Folder under results/ to write to."""
    partition: Sentence | None = None
    """Slurm's partition that has these nodes; by default that of the cluster."""
    constraint: Sentence | None = None
    """The feature that distinguishes these nodes from others of the partition."""
    gpus: Natural = 0
    """GPUs of a node to ask for if a study needs one."""
    runs: Annotated[int, Field(ge=1, le=5)] = 1
    """Number of runs to measure, each on a different node."""
    mem_mb: Count = 16_000
    """Memory to ask for, in MB."""


@dataclass(frozen=True, kw_only=True, config=KEYS)
class Settings:
    """The keys of config.yaml; all are required."""

    study_names: Annotated[Unique[str], Field(alias="studies")]
    """The studies to build and measure; all of them if the list is empty."""
    grid_name: Annotated[GridName, Field(alias="grid")]
    """The grid to run, one of those below. Results of `smoke` stay under build/."""
    grids: Annotated[Mapping[GridName, GridKeys], Field(min_length=len(GRIDS))]
    """The effort of each grid: `smoke` tries the headline cases, `default` measures a machine, and
    `full` also the cases that study.yaml keeps for it."""
    machine: MachineName
    """Folder under results/ to write to; `auto` names it after the GPU."""
    gpu: GpuNames
    """Index or UUID of the GPU to measure on, or a list of those of several GPUs of one kind, from
    the front of which a study takes as many as it needs. Without a list, a study of several GPUs
    takes free ones of the same kind; its results are of another machine, such as nvidia-h200-x2."""
    shared_gpu: Literal["refuse", "record"]
    """If another process uses the GPU, `refuse` to measure, or measure and `record` it."""
    runs: Count
    """Fresh runs that every case needs. One command makes one run of the studies that lack some."""
    busy: Literal["wait", "refuse"]
    """While another command measures on this machine, `wait` until it has ended, or `refuse`."""
    published: Unique[MachineName]
    """Machines whose results must be whole: the site is not built if the publication check finds a
    fault of theirs. The home page lists faults of other machines."""
    nvcc: Sentence
    """Path of nvcc; `auto` uses the locked one, else CUDACXX, CUDA_HOME or PATH."""
    arch: Annotated[str, Field(pattern="^(auto|sm_[0-9]{2,3}[af]?)$")]
    """Architecture to build for; `auto` is that of the GPU, or sm_90 without a GPU."""
    round_limit_s: Positive
    """A round that takes longer is ended; finished rounds are kept."""
    managed: bool
    """Whether variants may use managed memory, at most a quarter of the GPU's free memory."""
    machines: tuple[Machine, ...]
    """Nodes of a cluster for `--profile workflow/profiles/slurm`, in config/machines.yaml."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Grid(GridKeys):
    """A grid and its name."""

    name: str


@dataclasses.dataclass(frozen=True, kw_only=True)
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
    data = {**read_yaml(CONFIG_FILE), **(overrides or {})}
    settings, studies = read(Settings, data, "config"), discover()
    for name in settings.study_names:
        require_known("config: studies", name, sorted(studies))
    chosen = {name: studies[name] for name in settings.study_names} or studies
    refuse_repeats("config: machines", [machine.name for machine in settings.machines])
    grid = Grid(name=settings.grid_name, **vars(settings.grids[settings.grid_name]))
    return Config(**vars(settings), studies=chosen, known=studies, grid=grid)


def changed(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The `overrides` that differ from config.yaml and do not name a folder of this machine."""
    usual = read_yaml(CONFIG_FILE)
    named = (item for item in sorted(overrides.items()) if item[0] != "nvcc")
    return {key: value for key, value in named if value != usual.get(key)}
