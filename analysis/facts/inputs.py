"""Everything the report is made from, read once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.store.published import load_published
from analysis.store.results import Provenance, machines, variant_files
from analysis.study import Study
from analysis.tables.claims import CLAIM_COLUMNS
from analysis.tables.counters import COUNTER_COLUMNS
from analysis.tables.model import MODEL_COLUMNS, PARAMETER_COLUMNS
from analysis.tables.summary import (
    RATIO_COLUMNS,
    RUN_COLUMNS,
    SKIPPED_COLUMNS,
    SUMMARY_COLUMNS,
)
from analysis.toolchain.ptxas import COLUMNS as RESOURCE_COLUMNS

VariantKey = tuple[str, str, str]
"""machine, study, variant"""


@dataclass(frozen=True)
class Inputs:
    """The summary stage's tables, what they were made from, and the studies as they are now.

    `summary` has SUMMARY_COLUMNS and `run`, the run each row was taken from.
    """

    studies: Mapping[str, Study]
    results: Path
    summary: pd.DataFrame
    ratios: pd.DataFrame
    repeats: pd.DataFrame
    skipped: pd.DataFrame
    claims: pd.DataFrame
    model: pd.DataFrame
    model_parameters: pd.DataFrame
    model_counters: pd.DataFrame
    resources: pd.DataFrame
    refused: Mapping[str, str]
    machines: Mapping[str, Mapping[str, Any]]
    provenance: Mapping[VariantKey, Provenance]

    @cached_property
    def published(self) -> dict[str, pd.DataFrame]:
        return {name: load_published(self.results, study) for name, study in self.studies.items()}

    def of_study(self, table: pd.DataFrame, study: Study) -> pd.DataFrame:
        """Rows of `table` about variants that `study` has now."""
        return table[(table["study"] == study.name) & table["variant"].isin(study.variant_names)]


def load_inputs(tables: Path, results: Path, modules: Path, studies: Mapping[str, Study]) -> Inputs:
    """Read the tables under `tables` and the descriptions and provenance under `results`.

    A table that is not there counts as empty. The compiler's figures come from resources.csv, or
    where that is not there from the reports beside the built modules.
    """
    refused_file = tables / "refused.json"
    refused = json.loads(refused_file.read_text()) if refused_file.exists() else {}
    known = [machine for machine in machines(results) if machine not in refused]
    files = [path for machine in known for path in variant_files(results, machine)]
    provenance = {
        (path.parts[-3], path.parts[-2], path.stem): json.loads(
            path.with_suffix(".json").read_text()
        )
        for path in files
    }
    summary = _read([tables / "summary.csv"], SUMMARY_COLUMNS)
    runs = _read([tables / "runs.csv"], RUN_COLUMNS)
    resources = tables / "resources.csv"
    reports = [resources] if resources.exists() else sorted(modules.rglob("*.ptxas.csv"))
    return Inputs(
        studies=studies,
        results=results,
        summary=summary.merge(runs, how="left", on=["machine", "study", "variant", "case"]),
        ratios=_read([tables / "ratios.csv"], RATIO_COLUMNS),
        repeats=_read([tables / "repeats.csv"], [*RATIO_COLUMNS, "run"]),
        skipped=_read([tables / "skipped.csv"], SKIPPED_COLUMNS),
        claims=_read([tables / "claims.csv"], CLAIM_COLUMNS),
        model=_read([tables / "model.csv"], MODEL_COLUMNS),
        model_parameters=_read([tables / "model_parameters.csv"], PARAMETER_COLUMNS),
        model_counters=_read([tables / "model_counters.csv"], COUNTER_COLUMNS),
        resources=_read(reports, list(RESOURCE_COLUMNS)),
        refused=refused,
        machines={
            machine: json.loads((results / machine / "machine.json").read_text())
            for machine in known
        },
        provenance=provenance,
    )


def _read(paths: list[Path], columns: list[str]) -> pd.DataFrame:
    numbers = {"median", "ci_low", "ci_high", "q1", "q3", "ratio", "throttled"}
    numbers |= {"published", "measured", "predicted", "counted", "residual", "margin", "value"}
    types = {column: "float64" for column in columns if column in numbers}
    texts = dict.fromkeys(("machine", "study", "variant", "case", "unit", "reason"), "str")
    frames = [
        pd.read_csv(path, dtype=texts | types, na_values=[""], keep_default_na=False)
        for path in paths
        if path.exists() and path.stat().st_size
    ]
    frames = [frame for frame in frames if not frame.empty]
    return pd.concat(frames)[columns] if frames else pd.DataFrame(columns=columns).astype(types)
