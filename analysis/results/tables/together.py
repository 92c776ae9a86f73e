"""All tables the report and others read: those of the studies, put together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from analysis.base.cli import existing_file, existing_folder, fail_in_one_line, program
from analysis.base.files import write_all
from analysis.results.collect import Collected
from analysis.results.store.folders import listed, machines
from analysis.results.tables.links import Fits, read_fits
from analysis.results.tables.of_study import REFUSED, Material, study_tables, to_csv
from analysis.results.tables.registry import TABLES
from analysis.study import discover


def put_together(
    of_studies: Mapping[str, Mapping[str, str]], fits: Fits, results: Path, out: Path
) -> dict[str, str]:
    """Write all tables to `out`, from the `study_tables` of every study, by its name.
    What is under `results` of a study that no longer exists is added.

    Returns what REFUSED says: the folders that were left out, and why.
    """
    gone = {
        folder.name
        for machine in machines(results)
        for folder in listed(results / machine)
        if folder.name not in of_studies
    }
    parts = dict(of_studies) | {name: study_tables(results, name, {}, fits) for name in gone}
    texts = [parts[name] for name in sorted(parts)]
    refused: dict[str, str] = {}
    for part in texts:
        refused |= json.loads(part[REFUSED])
    refused |= {f"{machine}: link model": why for machine, why in fits.left_out.items()}
    # The folder of a machine sorts before the folders in it.
    refused = dict(sorted(refused.items(), key=lambda one: one[0].split("/")))
    of_machines = Material(Collected(pd.DataFrame()), {}, fits)
    tables = {
        f"{name}.csv": to_csv(name, of_machines.table(name))
        if table.is_of_machines
        else _joined([text[f"{name}.csv"] for text in texts], table.columns)
        for name, table in TABLES.items()
    }
    tables[REFUSED] = json.dumps(refused, indent=1) + "\n"
    write_all({out / file: text for file, text in tables.items()})
    return refused


def _joined(texts: Sequence[str], columns: Sequence[str]) -> str:
    """Tables with the same columns as one. The first column, a machine or a study, orders their
    rows; no text has a line break in it."""
    rows = [row for text in texts for row in text.split("\n")[1:] if row]
    return "\n".join([",".join(columns), *sorted(rows, key=lambda row: row.partition(",")[0]), ""])


def main() -> None:
    parser = program("analysis.results.tables.together", __doc__)
    parser.add_argument(
        "--tables", type=existing_folder, required=True, help="of every study, a folder each"
    )
    parser.add_argument(
        "--links", type=existing_file, required=True, help="parameters of every machine"
    )
    parser.add_argument("--results", type=existing_folder, required=True, help="measured results")
    parser.add_argument("--out", type=Path, required=True, help="where the tables go")
    arguments = parser.parse_args()
    files = [*(f"{name}.csv" for name in TABLES), REFUSED]
    of_studies = {
        study: {file: (arguments.tables / study / file).read_text() for file in files}
        for study in discover()
    }
    fits = read_fits(arguments.links)
    refused = put_together(of_studies, fits, arguments.results, arguments.out)
    for folder, reason in refused.items():
        print(f"warning: {folder} is left out: {reason}")


if __name__ == "__main__":
    fail_in_one_line(main)
