"""The tables of all studies, from those of each.

python -m analysis.tables.together --tables build/tables --links build/links.json
    --results results --out build
"""

from __future__ import annotations

import argparse
from pathlib import Path

from analysis.cli import existing_file, existing_folder, fail_in_one_line
from analysis.study import discover
from analysis.tables.links import Links
from analysis.tables.of_study import COLUMNS, REFUSED
from analysis.tables.writing import put_together


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m analysis.tables.together", description="Put the studies' tables together."
    )
    parser.add_argument(
        "--tables", type=existing_folder, required=True, help="of every study, a folder each"
    )
    parser.add_argument(
        "--links", type=existing_file, required=True, help="parameters of every machine"
    )
    parser.add_argument("--results", type=existing_folder, required=True, help="measured results")
    parser.add_argument("--out", type=Path, required=True, help="where the tables go")
    return parser


def main() -> None:
    arguments = command_line().parse_args()
    files = [*(f"{name}.csv" for name in COLUMNS), REFUSED]
    of_studies = {
        study: {file: (arguments.tables / study / file).read_text() for file in files}
        for study in discover()
    }
    links = Links.from_file(arguments.links)
    refused = put_together(of_studies, links, arguments.results, arguments.out)
    for folder, reason in refused.items():
        print(f"warning: {folder} is left out: {reason}")


if __name__ == "__main__":
    fail_in_one_line(main)
