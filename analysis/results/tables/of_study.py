"""Make the tables of one study."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import pandas as pd

from analysis.base.cli import existing_file, existing_folder, fail_in_one_line, program
from analysis.base.errors import FieldError
from analysis.base.files import write_all
from analysis.base.isolating import UNFORESEEN, culprit, error_of, in_words
from analysis.results.collect import Collected, collect
from analysis.results.tables import summary
from analysis.results.tables.claims import claim_tables
from analysis.results.tables.counters import counter_table, counts
from analysis.results.tables.links import Fits, model_table, parameter_table, read_fits
from analysis.results.tables.ratios import ratios, ratios_by_round, repeatability, repeats
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
    by_round = ratios_by_round(samples, studies)
    model = model_table(summarised, fits, found.machines, studies)
    counted = counts(found, studies)
    claims, parts = claim_tables(samples, studies, found.published, model, counted)
    return {
        "summary": summarised,
        "ratios": ratios(by_round),
        "repeats": repeats(samples, by_round, studies),
        "repeatability": repeatability(samples, by_round, studies),
        "runs": summary.runs(samples),
        "rounds": summary.rounds(samples, studies),
        "skipped": summary.skipped(samples),
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
    try:
        tables = tables_of(found, study, fits)
    except UNFORESEEN as error:
        found = without_faulty_runs(found, lambda some: tables_of(some, study, fits), error)
        tables = tables_of(found, study, fits)
    texts = {f"{name}.csv": to_csv(name, table) for name, table in tables.items()}
    return {**texts, REFUSED: json.dumps(found.refused, indent=1) + "\n"}


def without_faulty_runs(
    found: Collected, compute: Callable[[Collected], object], error: Exception
) -> Collected:
    """The results without the runs with which `compute` fails, which are refused with file, metric
    and reason. A machine that fails with more than one of its runs loses all of them.

    Raises `error` if no machine fails by itself, or several with every run: then the fault is in
    the code.
    """
    faulty = dict(fault for machine in found.machines for fault in _faulty(found, machine, compute))
    if not faulty or (len(faulty) == len(found.runs) and len(found.machines) > 1):
        raise error
    samples = found.samples
    files = samples["machine"] + "/" + samples["study"] + "/" + samples["run"] + ".json"
    return replace(
        found,
        samples=samples[~files.isin(faulty.keys())],
        refused=found.refused | {file: f"{file}: {why}" for file, why in faulty.items()},
    )


def _faulty(
    found: Collected, machine: str, compute: Callable[[Collected], object]
) -> Iterator[tuple[str, str]]:
    """The files of a machine's runs with which `compute` fails, each with metric and reason."""
    here = found.only(machine)
    samples = here.samples
    if (error := error_of(lambda: compute(here))) is None:
        return

    def works_without(runs: Collection[str], metrics: Collection[str]) -> bool:
        is_gone = samples["run"].isin([*runs]) & samples["metric"].isin([*metrics])
        return error_of(lambda: compute(replace(here, samples=samples[~is_gone]))) is None

    every = samples["metric"].unique().tolist()
    files = {run.run: f"{machine}/{run.study}/{run.file_name}" for run in here.runs}
    one = culprit([*files], lambda gone: works_without(gone, every))
    for run in [one] if one else files:
        metric = culprit(every, partial(works_without, [run])) or "samples"
        expected = "expected values that tables can be made of"
        yield files[run], f"{metric}: {expected}, got {in_words(error)}"


def command_line() -> argparse.ArgumentParser:
    parser = program("analysis.results.tables.of_study", __doc__)
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
    fits = read_fits(arguments.links) if arguments.links else {}
    texts = study_tables(arguments.results, study.name, {study.name: study}, fits)
    write_all({arguments.out / file: text for file, text in texts.items()})


if __name__ == "__main__":
    fail_in_one_line(main)
