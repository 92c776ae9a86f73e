"""All tables the report and others read, written in one go."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from analysis.results.collect import collect
from analysis.results.summary import ratios, ratios_by_run, repeats, runs, skipped, summarise
from analysis.study import Study


def write_tables(results: Path, studies: Mapping[str, Study], out: Path) -> dict[str, str]:
    """Write summary.csv, ratios.csv, repeats.csv, runs.csv, skipped.csv and refused.json to `out`.

    Returns what refused.json says: the machines that were left out, and why.
    """
    collected = collect(results, studies)
    compared = ratios_by_run(collected.samples, studies)
    tables = {
        "summary": summarise(collected.samples),
        "ratios": ratios(compared),
        "repeats": repeats(compared, studies),
        "runs": runs(collected.samples),
        "skipped": skipped(collected.samples),
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.to_csv(out / f"{name}.csv", index=False, float_format="%.7g")
    (out / "refused.json").write_text(json.dumps(collected.refused, indent=1) + "\n")
    return collected.refused
