"""All tables the report and others read: those of the studies, put together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from analysis.files import write_all
from analysis.store.folders import machines, study_folders
from analysis.study import Study
from analysis.tables.links import Links, collect_links
from analysis.tables.model import parameter_table
from analysis.tables.of_study import COLUMNS, NUMBER, PARAMETERS, REFUSED, study_tables


def write_tables(results: Path, studies: Mapping[str, Study], out: Path) -> dict[str, str]:
    """Write summary.csv, ratios.csv, repeats.csv, repeatability.csv, runs.csv, skipped.csv, the
    link model's model.csv, model_parameters.csv and model_counters.csv, claims.csv,
    claim_parts.csv and refused.json to `out`.

    Returns what refused.json says: the folders that were left out, and why.
    """
    links = collect_links(results, studies)
    of_studies = {name: study_tables(results, name, studies, links) for name in studies}
    return put_together(of_studies, links, results, out)


def put_together(
    of_studies: Mapping[str, Mapping[str, str]], links: Links, results: Path, out: Path
) -> dict[str, str]:
    """As `write_tables`, from the `study_tables` of every study, by its name. What is under
    `results` of a study that no longer exists is added."""
    gone = {
        folder.name
        for machine in machines(results)
        for folder in study_folders(results / machine)
        if folder.name not in of_studies
    }
    parts = dict(of_studies) | {name: study_tables(results, name, {}, links) for name in gone}
    texts = [parts[name] for name in sorted(parts)]
    refused: dict[str, str] = {}
    for part in texts:
        refused |= json.loads(part[REFUSED])
    refused = {folder: refused[folder] for folder in sorted(refused, key=_place)}
    tables = {
        f"{name}.csv": _joined([text[f"{name}.csv"] for text in texts], columns)
        for name, columns in COLUMNS.items()
    }
    tables[PARAMETERS] = parameter_table(links.every).to_csv(index=False, float_format=NUMBER)
    tables[REFUSED] = json.dumps(refused, indent=1) + "\n"
    write_all({out / file: text for file, text in tables.items()})
    return refused


def _joined(texts: Sequence[str], columns: Sequence[str]) -> str:
    """Tables with the same columns as one. The first column, a machine or a study, orders their
    rows; no text has a line break in it."""
    rows = [row for text in texts for row in text.split("\n")[1:] if row]
    return "\n".join([",".join(columns), *sorted(rows, key=_first_cell), ""])


def _first_cell(row: str) -> str:
    return row.partition(",")[0]


def _place(folder: str) -> list[str]:
    """Sorts what is in a machine's folder after that folder."""
    return folder.split("/")
