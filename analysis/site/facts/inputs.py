"""Inputs of the site, read once."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pandas as pd

from analysis.base.errors import HotpathError
from analysis.results.store.keys import CaptureFile
from analysis.results.store.keys import RunFile as RunFile
from analysis.results.store.published import NOTHING, load_published
from analysis.results.store.runs import (
    PUBLISHED,
    Capture,
    codes_of,
    described,
    listed,
    machines,
    newest_host,
    read_about,
    read_captures,
)
from analysis.results.store.samples import SAMPLE_TYPES as SAMPLE_TYPES
from analysis.results.tables.rows import TABLES, ParameterRow, SummaryRow, read_table, rows_of
from analysis.study import Study
from analysis.toolchain.reports import MACHINE_CODE, RESOURCES

VariantKey = tuple[str, str, str]
"""machine, study, variant"""


@dataclass(frozen=True)
class MeasuredRow(SummaryRow):
    """A row of the summary, with its newest run and its number of disturbed rounds."""

    run: str
    disturbed: int


def place_of(about: RunFile | CaptureFile) -> str:
    """`<machine>/<study>`"""
    return f"{about.machine}/{about.study}"


@dataclass(frozen=True)
class Inputs:
    """Tables of the summary stage, their sources, and the current studies.

    The tables have the rows of `analysis.results.tables.rows`, but `summary` those of MeasuredRow;
    `resources` and `machine_code` those of RESOURCES and MACHINE_CODE. `machines` describes the
    host of each machine's newest run, `refused` has the reasons for what was left out, by its path
    under `results`.
    """

    studies: Mapping[str, Study]
    results: Path
    tables: Mapping[str, pd.DataFrame]
    resources: pd.DataFrame
    machine_code: pd.DataFrame
    refused: Mapping[str, str]
    machines: Mapping[str, Mapping[str, Any]]
    runs: Sequence[RunFile]
    captures: Sequence[Capture]

    @cached_property
    def published(self) -> dict[str, pd.DataFrame]:
        """Published figures of each study, without refused ones."""
        return {
            name: NOTHING
            if f"{PUBLISHED}/{name}.csv" in self.refused
            else load_published(self.results, study)
            for name, study in self.studies.items()
        }

    @cached_property
    def machine_names(self) -> dict[str, str]:
        """Names of machines on pages and charts, by `machine_names`."""
        return machine_names(self.machines)

    def called(self, machine: str) -> str:
        """The name of a machine on pages; other names are returned unchanged."""
        return self.machine_names.get(machine, machine)

    @property
    def parameters(self) -> list[ParameterRow]:
        """Parameters of the link model on every machine."""
        return rows_of(self.tables["model_parameters"], ParameterRow)

    def without(self, left_out: Mapping[str, str]) -> Inputs:
        """A copy without what is left out of results: a reason by `<machine>/<study>`."""
        runs = [run for run in self.runs if place_of(run) not in left_out]
        known = {run.machine for run in runs}

        def kept(table: pd.DataFrame) -> pd.DataFrame:
            if "study" not in table:
                return table[table["machine"].isin(known)]
            return table[~(table["machine"] + "/" + table["study"]).isin(left_out.keys())]

        return replace(
            self,
            tables={name: kept(table) for name, table in self.tables.items()},
            refused={**self.refused, **left_out},
            machines={name: one for name, one in self.machines.items() if name in known},
            runs=runs,
            captures=[one for one in self.captures if place_of(one.about) not in left_out],
        )

    def with_tables(self, **tables: pd.DataFrame) -> Inputs:
        """A copy in which `tables` replace those of the same names."""
        return replace(self, tables={**self.tables, **tables})

    @cached_property
    def codes(self) -> Mapping[str, Mapping[str, str]]:
        """The hash of the code of each variant, by study."""
        return {name: codes_of(study) for name, study in self.studies.items()}

    @cached_property
    def runs_of(self) -> Mapping[VariantKey, list[RunFile]]:
        """The runs of each measured variant, oldest first."""
        found: dict[VariantKey, list[RunFile]] = {}
        for run in self.runs:
            for variant in run.variants:
                found.setdefault((run.machine, run.study, variant), []).append(run)
        return dict(sorted(found.items()))

    def fresh_runs(self, key: VariantKey) -> list[RunFile]:
        """The runs of a variant's current code, oldest first; none of one that is gone."""
        _, study, variant = key
        known = self.studies.get(study)
        if known is None or variant not in known.variant_names:
            return []
        now = {variant: self.codes[study][variant]}
        return [run for run in self.runs_of.get(key, []) if run.fresh(now)]

    def files(self, machine: str, study: str) -> list[Path]:
        """The files of all runs and captures of a study on a machine, newest first."""
        abouts: list[RunFile | CaptureFile] = [*self.runs, *(one.about for one in self.captures)]
        of_place = [one for one in abouts if (one.machine, one.study) == (machine, study)]
        names = [name for about in of_place for name in (about.file_name, *about.files)]
        return [self.results / machine / study / name for name in sorted(names, reverse=True)]


def load_inputs(tables: Path, results: Path, studies: Mapping[str, Study]) -> Inputs:
    """Read the tables under `tables` and the descriptions of runs and captures under `results`.

    A missing table counts as empty. Raises HotpathError for tables of a machine without results.
    """
    refused_file = tables / "refused.json"
    refused = json.loads(refused_file.read_text()) if refused_file.exists() else {}
    bad = {results / name for name in refused}
    known = [machine for machine in machines(results) if machine not in refused]
    folders = [one for name in known for one in listed(results / name) if one not in bad]
    abouts = [path for folder in folders for path in reversed(described(folder))]
    captures = [one for folder in folders for one in read_captures(folder)]
    runs = [read_about(path, RunFile) for path in abouts if path not in bad]
    made = {name: read_table(tables / f"{name}.csv", types) for name, types in TABLES.items()}
    if gone := sorted({*made["summary"]["machine"]} - {run.machine for run in runs}):
        raise HotpathError(
            f"{tables}: tables of {', '.join(gone)}, but {results} has no results of them; "
            "run `snakemake -c 8 summary`"
        )
    of_cell = ["machine", "study", "variant", "case"]
    hosts = {machine: newest_host(results / machine, bad) for machine in known}
    return Inputs(
        studies=studies,
        results=results,
        tables=made | {"summary": made["summary"].merge(made["runs"], how="left", on=of_cell)},
        resources=read_table(tables / "resources.csv", RESOURCES),
        machine_code=read_table(tables / "machine_code.csv", MACHINE_CODE),
        refused=refused,
        machines={machine: host.described() for machine, host in hosts.items() if host},
        runs=runs,
        captures=[one for one in captures if one.path.with_name(one.about.file_name) not in bad],
    )


_PLAIN: Final = re.compile(r"[A-Za-z0-9]+(?:[ -][A-Za-z0-9]+)*")
"""Text that needs no escaping in any output format."""


def machine_names(machines: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Short names such as `H100` or `2 × H200`, by folder; `machines` are descriptions by folder.

    A name is the shortest one that no other machine could have. Without one, because no GPU or the
    same GPU as elsewhere is named, it is the name of the folder.
    """
    possible = {machine: _names(described) for machine, described in machines.items()}
    counts = Counter(name for machine, names in possible.items() for name in {machine, *names})
    return {
        machine: next((name for name in names if counts[name] == 1), machine)
        for machine, names in possible.items()
    }


def _names(described: Mapping[str, Any]) -> list[str]:
    """Possible names of a machine, shortest first: its GPU without the vendor, up to the first
    word with a digit or to a later one. `NVIDIA H100 80GB HBM3` is an `H100`, an `H100 80GB` or an
    `H100 80GB HBM3`."""
    gpu, gpus = described.get("gpu"), described.get("gpus")
    if not isinstance(gpu, str) or not _PLAIN.fullmatch(gpu):
        return []
    model = gpu if re.match(r"\w*\d", gpu) else re.sub(r"^\w+[ -]?", "", gpu)
    count = f"{gpus} × " if isinstance(gpus, int) and gpus > 1 else ""
    ends = (word.end() for word in re.finditer(r"\w+", model))
    return [count + model[:end] for end in ends if re.search(r"\d", model[:end])]
