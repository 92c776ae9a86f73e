"""All tables the report and others read, written in one go."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from analysis.files import write_whole
from analysis.store.collect import collect
from analysis.study import Study
from analysis.tables.agreement import agreement
from analysis.tables.claims import claim_tables
from analysis.tables.model import model_tables
from analysis.tables.repeat import repeatability
from analysis.tables.summary import (
    ratios,
    ratios_by_round,
    runs,
    skipped,
    summarise,
)


def write_tables(results: Path, studies: Mapping[str, Study], out: Path) -> dict[str, str]:
    """Write summary.csv, ratios.csv, repeats.csv, runs.csv, skipped.csv, the link model's
    model.csv, model_parameters.csv and model_counters.csv, claims.csv, claim_parts.csv and
    refused.json to `out`.

    Returns what refused.json says: the folders that were left out, and why.
    """
    collected = collect(results, studies)
    compared = ratios_by_round(collected.samples, studies)
    summary = summarise(collected.samples)
    predicted = model_tables(
        collected.counters, collected.samples, summary, collected.machines, studies
    )
    judged = claim_tables(collected.samples, studies, collected.published, predicted.model)
    tables = {
        "summary": summary,
        "ratios": ratios(compared),
        "repeats": agreement(collected.samples, compared, studies),
        "repeatability": repeatability(
            collected.samples, studies, collected.published, collected.machines
        ),
        "runs": runs(collected.samples),
        "skipped": skipped(collected.samples),
        "model": predicted.model,
        "model_parameters": predicted.parameters,
        "model_counters": predicted.counters,
        "claims": judged.claims,
        "claim_parts": judged.parts,
    }
    for name, table in tables.items():
        write_whole(out / f"{name}.csv", table.to_csv(index=False, float_format="%.7g"))
    write_whole(out / "refused.json", json.dumps(collected.refused, indent=1) + "\n")
    return collected.refused
