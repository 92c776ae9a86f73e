"""Summarise the results of every machine into tables.

python -m analysis.tables --results results --out build
"""

from __future__ import annotations

import argparse
from pathlib import Path

from analysis.cli import existing_folder, fail_in_one_line
from analysis.study import discover
from analysis.tables.writing import write_tables


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m analysis.tables", description="Summarise the results of every machine."
    )
    parser.add_argument("--results", type=existing_folder, required=True, help="measured results")
    parser.add_argument("--out", type=Path, required=True, help="where the tables go")
    return parser


def main() -> None:
    arguments = command_line().parse_args()
    refused = write_tables(arguments.results, discover(), arguments.out)
    for folder, reason in refused.items():
        print(f"warning: {folder} is left out: {reason}")


if __name__ == "__main__":
    fail_in_one_line(main)
