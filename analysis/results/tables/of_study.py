"""Make the tables of one study."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import pandas as pd

from analysis.base.cli import existing_file, existing_folder, fail_in_one_line, program
from analysis.base.errors import UNFORESEEN, FieldError, culprit, error_of, in_words
from analysis.base.files import write_all
from analysis.results.collect import Collected, collect
from analysis.results.tables import ratios, summary
from analysis.results.tables.claims import claim_tables
from analysis.results.tables.links import (
    Fits,
    counter_table,
    counts,
    model_table,
    parameter_table,
    read_fits,
)
from analysis.results.tables.rows import TABLES, columns
from analysis.study import Study, find_study

REFUSED: Final = "refused.json"
NUMBER: Final = "%.7g"


def tables_of(
    found: Collected, studies: Mapping[str, Study], fits: Fits
) -> dict[str, pd.DataFrame]:
    """All of TABLES, of the results of some studies. Results of others are stale."""
    samples = found.samples
    summarised = summary.summarise(samples, studies)
    by_round = ratios.ratios_by_round(samples, studies)
    model = model_table(summarised, fits, found.machines, studies)
    counted = counts(found, studies)
    claims, parts = claim_tables(samples, studies, found.published, model, counted)
    return {
        "summary": summarised,
        "ratios": ratios.ratio_table(by_round),
        "repeats": ratios.repeat_table(samples, by_round, studies),
        "repeatability": ratios.repeatability_table(samples, by_round, studies),
        "runs": summary.run_table(samples),
        "rounds": summary.round_table(samples, studies),
        "skipped": summary.skipped_table(samples),
        "claims": claims,
        "claim_parts": parts,
        "model": model,
        "model_parameters": parameter_table(fits),
        "model_counters": counter_table(counted, studies),
    }


def to_csv(name: str, table: pd.DataFrame) -> str:
    """The text of one of TABLES."""
    return table.to_csv(index=False, columns=columns(TABLES[name]), float_format=NUMBER)


def study_tables(
    results: Path, name: str, studies: Mapping[str, Study], fits: Fits
) -> dict[str, str]:
    """The texts of all tables of the study `name`, by file name, and of REFUSED: which of its
    results, and which machines, were left out, and why."""
    study = {name: studies[name]} if name in studies else {}
    found = collect(results, study, only={name})
    make = partial(tables_of, studies=study, fits=fits)
    try:
        tables = make(found)
    except UNFORESEEN:
        faults = {
            file: why for machine in found.machines for file, why in _faulty(found, machine, make)
        }
        if not faults or (len(faults) == len(found.runs) and len(found.machines) > 1):
            raise  # the fault is in the code
        samples = found.samples
        files = samples["machine"] + "/" + samples["study"] + "/" + samples["run"] + ".json"
        found.samples = samples[~files.isin(faults)]
        found.refused |= faults
        tables = make(found)
    texts = {f"{name}.csv": to_csv(name, table) for name, table in tables.items()}
    return {**texts, REFUSED: json.dumps(found.refused, indent=1) + "\n"}


def _faulty(
    found: Collected, machine: str, make: Callable[[Collected], object]
) -> Iterator[tuple[str, str]]:
    """The files of a machine's runs that `make` fails with, each with metric and reason: of the one
    run to blame, else of all."""
    here = found.only(machine)
    samples = here.samples
    if (error := error_of(lambda: make(here))) is None:
        return

    def works_without(runs: Collection[str], metrics: Collection[str]) -> bool:
        is_gone = samples["run"].isin([*runs]) & samples["metric"].isin([*metrics])
        return error_of(lambda: make(replace(here, samples=samples[~is_gone]))) is None

    metrics = samples["metric"].unique().tolist()
    files = {run.run: f"{machine}/{run.study}/{run.file_name}" for run in here.runs}
    to_blame = culprit([*files], lambda gone: works_without(gone, metrics))
    for run in [to_blame] if to_blame else files:
        metric = culprit(metrics, partial(works_without, [run])) or "samples"
        expected = "expected values that tables can be made of"
        yield files[run], f"{files[run]}: {metric}: {expected}, got {in_words(error)}"


def main() -> None:
    parser = program("analysis.results.tables.of_study", __doc__)
    parser.add_argument("study")
    parser.add_argument("--results", type=existing_folder, required=True, help="measured results")
    parser.add_argument("--links", type=existing_file, help="parameters of every machine")
    parser.add_argument("--out", type=Path, required=True, help="where the tables go")
    arguments = parser.parse_args()
    study = find_study(arguments.study)
    if study.has_link and arguments.links is None:
        raise FieldError("--links", f"a file, as {study.name} is predicted", None)
    fits = read_fits(arguments.links) if arguments.links else {}
    texts = study_tables(arguments.results, study.name, {study.name: study}, fits)
    write_all({arguments.out / file: text for file, text in texts.items()})


if __name__ == "__main__":
    fail_in_one_line(main)
