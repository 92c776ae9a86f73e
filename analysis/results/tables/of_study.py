"""The tables of one study.

python -m analysis.results.tables.of_study STUDY --results results --out FOLDER
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from analysis.base.cli import existing_file, existing_folder, fail_in_one_line
from analysis.base.errors import FieldError
from analysis.base.files import write_all
from analysis.results.store.collect import collect
from analysis.results.tables.claims import CLAIM_COLUMNS, PART_COLUMNS, claim_tables
from analysis.results.tables.counters import COUNTER_COLUMNS, counter_table, fresh_counts
from analysis.results.tables.links import Links
from analysis.results.tables.model import MODEL_COLUMNS, model_table, parameter_table
from analysis.results.tables.ratios import RATIO_COLUMNS, ratios, ratios_by_round
from analysis.results.tables.repeatability import REPEATABILITY_COLUMNS, repeatability
from analysis.results.tables.repeats import REPEAT_COLUMNS, repeat_table
from analysis.results.tables.rounds import ROUND_COLUMNS, rounds
from analysis.results.tables.summary import (
    RUN_COLUMNS,
    SKIPPED_COLUMNS,
    SUMMARY_COLUMNS,
    runs,
    skipped,
    summarise,
)
from analysis.study import Study, find_study

COLUMNS: Final = {
    "summary": SUMMARY_COLUMNS,
    "ratios": RATIO_COLUMNS,
    "repeats": REPEAT_COLUMNS,
    "repeatability": REPEATABILITY_COLUMNS,
    "runs": RUN_COLUMNS,
    "rounds": ROUND_COLUMNS,
    "skipped": SKIPPED_COLUMNS,
    "model": MODEL_COLUMNS,
    "model_counters": COUNTER_COLUMNS,
    "claims": CLAIM_COLUMNS,
    "claim_parts": PART_COLUMNS,
}
"""Of each of the tables, by its name."""
PARAMETERS: Final = "model_parameters.csv"
"""The same for all studies that the link model predicts, as it is of the machines."""
REFUSED: Final = "refused.json"
NUMBER: Final = "%.7g"


def study_tables(
    results: Path, name: str, studies: Mapping[str, Study], links: Links
) -> dict[str, str]:
    """The texts of all tables of the study `name`, by file name, of PARAMETERS, and of REFUSED:
    which of its results, and which machines, were left out, and why.

    A study that is not one of `studies` has stale results only.
    """
    study = {name: studies[name]} if name in studies else {}
    found = collect(results, study, only={name})
    samples, machines = found.samples, found.machines
    compared = ratios_by_round(samples, study)
    summary = summarise(samples)
    model = model_table(summary, links.every, machines, study)
    judged = claim_tables(samples, study, found.published, model, fresh_counts(found, study))
    tables = {
        "summary": summary,
        "ratios": ratios(compared),
        "repeats": repeat_table(samples, compared, study),
        "repeatability": repeatability(samples, study, found.published, machines, links),
        "runs": runs(samples),
        "rounds": rounds(samples, study),
        "skipped": skipped(samples),
        "model": model,
        "model_counters": counter_table(found.counters, machines, study),
        "claims": judged.claims,
        "claim_parts": judged.parts,
    }
    texts = {
        f"{name}.csv": tables[name].to_csv(index=False, columns=columns, float_format=NUMBER)
        for name, columns in COLUMNS.items()
    }
    parameters = parameter_table(links.every).to_csv(index=False, float_format=NUMBER)
    return texts | {PARAMETERS: parameters, REFUSED: json.dumps(found.refused, indent=1) + "\n"}


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m analysis.results.tables.of_study",
        description="Make the tables of one study.",
    )
    parser.add_argument("study")
    parser.add_argument("--results", type=existing_folder, required=True, help="measured results")
    parser.add_argument(
        "--links",
        type=existing_file,
        help="parameters of every machine, for a study that they predict",
    )
    parser.add_argument("--out", type=Path, required=True, help="where the tables go")
    return parser


def main() -> None:
    arguments = command_line().parse_args()
    study = find_study(arguments.study)
    if study.has_link and arguments.links is None:
        raise FieldError("--links", f"a file, as {study.name} is predicted", None)
    links = Links.from_file(arguments.links) if arguments.links else Links()
    texts = study_tables(arguments.results, study.name, {study.name: study}, links)
    write_all({arguments.out / file: text for file, text in texts.items()})


if __name__ == "__main__":
    fail_in_one_line(main)
