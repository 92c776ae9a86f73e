"""Inputs of the site, read once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.base.errors import HotpathError
from analysis.results.store.collect import VariantKey as VariantKey
from analysis.results.store.folders import KINDS, PUBLISHED, machines, samples_files, study_folders
from analysis.results.store.provenance import Provenance, read_provenance
from analysis.results.store.published import NOTHING, load_published
from analysis.results.store.results import read_machine
from analysis.results.store.samples import read_samples as read_samples
from analysis.results.tables.registry import TABLES
from analysis.results.tables.rows import ParameterRow, read_table, rows_of
from analysis.site.facts.machine_names import machine_names
from analysis.study import Study
from analysis.study.source import fingerprint
from analysis.toolchain.derived import read_absent, read_derived
from analysis.toolchain.ptxas import KernelResources
from analysis.toolchain.sass import VariantCode, read_code


@dataclass(frozen=True)
class Inputs:
    """Tables of the summary stage, their sources, and the current studies.

    The tables have the rows of `analysis.site.facts.rows`: `summary` MeasuredRow, `resources`
    KernelResources, the others the class of their name. `machine_code` is by study and variant.
    `derived` are the tables of each study's tables.py by name, and `absent` the reasons for missing
    ones.
    """

    studies: Mapping[str, Study]
    results: Path
    tables: Mapping[str, pd.DataFrame]
    resources: pd.DataFrame
    machine_code: Mapping[tuple[str, str], VariantCode]
    derived: Mapping[str, Mapping[str, pd.DataFrame]]
    absent: Mapping[str, Mapping[str, str]]
    refused: Mapping[str, str]
    machines: Mapping[str, Mapping[str, Any]]
    provenance: Mapping[VariantKey, Provenance]

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

    def with_tables(self, **tables: pd.DataFrame) -> Inputs:
        """A copy in which `tables` replace those of the same names."""
        return replace(self, tables={**self.tables, **tables})

    def files(self, key: VariantKey) -> list[Path]:
        """Existing files of a variant on a machine: samples, provenance and captures."""
        machine, study, variant = key
        named = (self.results / machine / study / f"{variant}{kind}" for kind in sorted(KINDS))
        return [path for path in named if path.exists()]

    def runs_on(self, machine: str) -> Iterator[tuple[str, Provenance]]:
        """Study and provenance of every kept run of each variant on a machine."""
        for (where, study, _), newest in self.provenance.items():
            if where == machine:
                yield from ((study, entry) for entry in (newest, *newest["runs"]))

    def is_current(self, key: VariantKey) -> bool:
        """Whether the newest samples of a variant are of its current code. The study must still
        have the variant."""
        _, study, variant = key
        known = self.studies[study]
        now = fingerprint(known, known.variant(variant))
        return bool(self.provenance[key]["source_sha256"] == now)

    def of_study(self, table: pd.DataFrame, study: Study) -> pd.DataFrame:
        """Rows of `table` about variants that `study` has now."""
        return table[(table["study"] == study.name) & table["variant"].isin(study.variant_names)]


def load_inputs(
    tables: Path,
    results: Path,
    studies: Mapping[str, Study],
    derived: Mapping[str, Path] | None = None,
) -> Inputs:
    """Read the tables under `tables` and the descriptions and provenance under `results`.

    A missing table counts as empty. `derived` are the folders of the tables of each study's code;
    left out, these are under `tables`, and the results of all studies are read. Raises HotpathError
    for tables of a machine without results.
    """
    of_code = derived or {name: tables / "derived" / name for name in studies}
    refused_file = tables / "refused.json"
    refused = json.loads(refused_file.read_text()) if refused_file.exists() else {}
    known = [machine for machine in machines(results) if machine not in refused]
    provenance = {
        (machine, folder.name, path.stem): read_provenance(path.with_suffix(".json"))
        for machine in known
        for folder in study_folders(results / machine)
        if f"{machine}/{folder.name}" not in refused and (derived is None or folder.name in derived)
        for path in samples_files(folder)
    }
    made = {name: read_table([tables / f"{name}.csv"], table.row) for name, table in TABLES.items()}
    summary = made["summary"]
    if gone := sorted({*summary["machine"]} - {*known}):
        raise HotpathError(
            f"{tables}: tables of {', '.join(gone)}, but {results} has no results of them; "
            "run `snakemake -c 8 summary`"
        )
    of_cell = ["machine", "study", "variant", "case"]
    return Inputs(
        studies=studies,
        results=results,
        tables=made | {"summary": summary.merge(made["runs"], how="left", on=of_cell)},
        resources=read_table([tables / "resources.csv"], KernelResources),
        machine_code=read_code(tables / "machine_code.csv"),
        derived={name: read_derived(folder) for name, folder in of_code.items()},
        absent={name: read_absent(folder) for name, folder in of_code.items()},
        refused=refused,
        machines={machine: read_machine(results / machine) for machine in known},
        provenance=provenance,
    )
