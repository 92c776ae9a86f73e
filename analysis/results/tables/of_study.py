"""Make the tables of one study."""

from __future__ import annotations

import argparse
import json
from collections import ChainMap
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Final

import pandas as pd

from analysis.base.cli import existing_file, existing_folder, fail_in_one_line, program
from analysis.base.errors import FieldError
from analysis.base.files import write_all
from analysis.base.forked import forked_map
from analysis.base.isolating import UNFORESEEN, culprit, error_of, in_words
from analysis.results.collect import Collected, collect
from analysis.results.store.keys import RunFile
from analysis.results.tables.claims import ClaimTables, claim_tables
from analysis.results.tables.counters import counted_of, fresh_counts, read_counted
from analysis.results.tables.links import Fits, read_fits
from analysis.results.tables.ratios import ratios_by_round
from analysis.results.tables.registry import TABLES
from analysis.study import Study, find_study

REFUSED: Final = "refused.json"
NUMBER: Final = "%.7g"
SLOW_GROUPS: Final = (("repeatability",), ("claims", "claim_parts"))
"""Tables that take longest; a process makes each group while others make the rest."""


class Material:
    """The input of tables: results of one study, and tables that others are made of.

    A study that is not one of `studies` has stale results only.
    """

    def __init__(self, found: Collected, studies: Mapping[str, Study], fits: Fits) -> None:
        self._found = found
        self._made: dict[str, pd.DataFrame] = {}
        self.samples, self.machines = found.samples, found.machines
        self.published = found.published
        self.counters = read_counted(counted_of(found, studies))
        self.studies, self.fits = studies, fits

    def table(self, name: str) -> pd.DataFrame:
        """One of TABLES, made once."""
        if name not in self._made:
            self._made[name] = TABLES[name].make(self)
        return self._made[name]

    @property
    def summary(self) -> pd.DataFrame:
        return self.table("summary")

    @cached_property
    def ratios_by_round(self) -> pd.Series:
        return ratios_by_round(self.samples, self.studies)

    @cached_property
    def judged(self) -> ClaimTables:
        counts = fresh_counts(self._found, self.studies)
        return claim_tables(self.samples, self.studies, self.published, self.table("model"), counts)


def to_csv(name: str, table: pd.DataFrame) -> str:
    """The text of one of TABLES."""
    return table.to_csv(index=False, columns=TABLES[name].columns, float_format=NUMBER)


def study_tables(
    results: Path, name: str, studies: Mapping[str, Study], fits: Fits
) -> dict[str, str]:
    """The texts of all tables of the study `name`, by file name, and of REFUSED: which of its
    results, and which machines, were left out, and why."""
    study = {name: studies[name]} if name in studies else {}
    found = collect(results, study, only={name})
    try:
        texts = _texts(found, study, fits)
    except UNFORESEEN as error:
        found = without_faulty_runs(found, lambda some: _texts(some, study, fits), error)
        texts = _texts(found, study, fits)
    return {**texts, REFUSED: json.dumps(found.refused, indent=1) + "\n"}


def _texts(found: Collected, study: Mapping[str, Study], fits: Fits) -> dict[str, str]:
    """The texts of all tables of a study, by file name."""
    material = Material(found, study, fits)
    material.table("summary")  # before the fork, so that all processes have it
    others = [table for table in TABLES if table not in chain(*SLOW_GROUPS)]
    groups = forked_map(
        lambda names: {f"{name}.csv": to_csv(name, material.table(name)) for name in names},
        [*SLOW_GROUPS, others],
    )
    return dict(ChainMap(*groups))


def without_faulty_runs(
    found: Collected, compute: Callable[[Collected], object], error: Exception
) -> Collected:
    """The results without the runs with which `compute` fails, which are refused with file, metric
    and reason. A machine that fails with more than one of its runs loses all of them.

    Raises `error` if no machine fails by itself, or several with every run: then the fault is in
    the code.
    """
    faulty = [one for machine in found.machines for one in _faulty(found.only(machine), compute)]
    if not faulty or (len(faulty) == len(found.runs) and len(found.machines) > 1):
        raise error
    refused = {f"{run.machine}/{run.study}/{run.file_name}": why for run, why in faulty}
    return replace(
        found.without([run for run, _ in faulty]),
        refused={**found.refused, **{file: f"{file}: {why}" for file, why in refused.items()}},
    )


def _faulty(
    found: Collected, compute: Callable[[Collected], object]
) -> Iterator[tuple[RunFile, str]]:
    """The runs of one machine with which `compute` fails, each with metric and reason."""
    if (error := error_of(lambda: compute(found))) is None:
        return
    runs = {run.run: run for run in found.runs}

    def works(gone: Collection[str], metrics: Collection[str] = ()) -> bool:
        some = found.without([runs[run] for run in gone], metrics)
        return error_of(lambda: compute(some)) is None

    one = culprit([*runs], works)
    for run in [one] if one else runs:
        metrics = found.samples[found.samples["run"] == run]["metric"].unique().tolist()
        metric = culprit(metrics, partial(works, [run])) or "samples"
        expected = "expected values that tables can be made of"
        yield runs[run], f"{metric}: {expected}, got {in_words(error)}"


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
    fits = read_fits(arguments.links) if arguments.links else Fits()
    texts = study_tables(arguments.results, study.name, {study.name: study}, fits)
    write_all({arguments.out / file: text for file, text in texts.items()})


if __name__ == "__main__":
    fail_in_one_line(main)
