"""All tables the report and others read: those of the studies, put together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from analysis.base.cli import existing_file, existing_folder, fail_in_one_line, program
from analysis.base.files import write_all
from analysis.results.store.runs import listed, machines
from analysis.results.tables.links import Fits, parameter_table, read_fits
from analysis.results.tables.of_study import REFUSED, study_tables, to_csv
from analysis.results.tables.rows import TABLES
from analysis.study import discover


def put_together(
    of_studies: Mapping[str, Mapping[str, str]], fits: Fits, results: Path, out: Path
) -> dict[str, str]:
    """Write all tables to `out`, from the `study_tables` of every study, by its name.
    What is under `results` of a study that no longer exists is added.

    Returns what REFUSED says: the folders that were left out, and why.
    """
    names = {folder.name for machine in machines(results) for folder in listed(results / machine)}
    gone = {name: study_tables(results, name, {}, fits) for name in names - of_studies.keys()}
    texts = [text for _, text in sorted({**of_studies, **gone}.items())]
    refused = {path: why for text in texts for path, why in json.loads(text[REFUSED]).items()}
    refused |= {f"{name}: link model": why for name, why in fits.items() if isinstance(why, str)}
    # The folder of a machine sorts before the folders in it.
    refused = dict(sorted(refused.items(), key=lambda item: item[0].split("/")))
    tables = {REFUSED: json.dumps(refused, indent=1) + "\n"}
    for file in [f"{name}.csv" for name in TABLES]:
        header, *_ = texts[0][file].split("\n")
        rows = [line for text in texts for line in text[file].split("\n")[1:] if line]
        # The first column, a machine or a study, orders the rows; no text has a line break in it.
        rows.sort(key=lambda line: line.partition(",")[0])
        tables[file] = "\n".join([header, *rows, ""])
    tables["model_parameters.csv"] = to_csv("model_parameters", parameter_table(fits))
    write_all({out / file: text for file, text in tables.items()})
    return refused


def main() -> None:
    parser = program("analysis.results.tables.together", __doc__)
    add = parser.add_argument
    add("--tables", type=existing_folder, required=True, help="of every study, a folder each")
    add("--links", type=existing_file, required=True, help="parameters of every machine")
    add("--results", type=existing_folder, required=True, help="measured results")
    add("--out", type=Path, required=True, help="where the tables go")
    arguments = parser.parse_args()
    of_studies = {
        study: {
            file: (arguments.tables / study / file).read_text()
            for file in [*(f"{name}.csv" for name in TABLES), REFUSED]
        }
        for study in discover()
    }
    refused = put_together(of_studies, read_fits(arguments.links), arguments.results, arguments.out)
    for folder, reason in refused.items():
        print(f"warning: {folder} is left out: {reason}")


if __name__ == "__main__":
    fail_in_one_line(main)
