"""Make the tables of every study from its results, and put them together."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import pandas as pd

from analysis.base.cli import fail_in_one_line, program
from analysis.base.errors import UNFORESEEN, error_of, in_words
from analysis.base.files import write_all
from analysis.base.processes import forked_map
from analysis.results.collect import Collected, collect
from analysis.results.store.runs import listed, machines
from analysis.results.tables import links, ratios, summary
from analysis.results.tables.claims import claim_tables
from analysis.results.tables.rows import TABLES
from analysis.study import Study, discover

REFUSED: Final = "refused.json"
NUMBER: Final = "%.7g"


def tables_of(
    found: Collected, studies: Mapping[str, Study], fits: links.Fits
) -> dict[str, pd.DataFrame]:
    """All of TABLES, of the results of some studies. Results of others are stale."""
    used = summary.chosen(found.samples)
    summarised = summary.summarise(used, studies)
    by_round = ratios.ratios_by_round(used, studies)
    compared = ratios.ratio_table(by_round)
    model = links.model_table(summarised, fits, found.machines if fits else {}, studies)
    counted = links.counts(found, studies)
    claims, parts = claim_tables(found.samples, studies, found.published, model, counted)
    return {
        "summary": summarised,
        "ratios": compared,
        "repeats": ratios.repeat_table(by_round, studies),
        "repeatability": ratios.repeatability_table(used, summarised, compared, by_round, studies),
        "runs": summary.run_table(used),
        "rounds": summary.round_table(used, studies),
        "skipped": summary.skipped_table(used),
        "claims": claims,
        "claim_parts": parts,
        "model": model,
        "model_parameters": links.parameter_table(fits),
    }


def to_csv(name: str, table: pd.DataFrame) -> str:
    """The text of one of TABLES."""
    return table.to_csv(index=False, columns=[*TABLES[name]], float_format=NUMBER)


def study_tables(
    results: Path, name: str, studies: Mapping[str, Study], fits: links.Fits
) -> dict[str, str]:
    """The texts of all tables of the study `name`, by file name, and of REFUSED: its runs that were
    left out, and why."""
    study = {name: studies[name]} if name in studies else {}
    found = collect(results, study, only={name})
    make = partial(tables_of, studies=study, fits=fits)
    try:
        tables = make(found)
    except UNFORESEEN:
        files = found.samples["machine"] + f"/{name}/" + found.samples["run"] + ".json"
        faults = {
            str(file): f"{file}: expected values that tables can be made of, got {in_words(why)}"
            for file, of_run in found.samples.groupby(files)
            if (why := error_of(partial(make, replace(found, samples=of_run))))
        }
        if not faults or (len(faults) == files.nunique() and len(found.machines) > 1):
            raise  # the fault is in the code
        found.samples = found.samples[~files.isin(faults)]
        found.refused |= faults
        tables = make(found)
    texts = {f"{name}.csv": to_csv(name, table) for name, table in tables.items()}
    return {**texts, REFUSED: json.dumps(found.refused, indent=1) + "\n"}


def put_together(
    of_studies: Mapping[str, Mapping[str, str]], fits: links.Fits, results: Path, out: Path
) -> dict[str, str]:
    """Write all tables to `out`, from the `study_tables` of every study, by its name, and of each
    study under `results` that no longer exists. Returns the content of REFUSED."""
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
    tables["model_parameters.csv"] = to_csv("model_parameters", links.parameter_table(fits))
    write_all({out / file: text for file, text in tables.items()})
    return refused


def main() -> None:
    parser = program("analysis.results.tables.of_study", __doc__)
    parser.add_argument("--results", type=Path, required=True, help="measured results")
    parser.add_argument("--out", type=Path, required=True, help="where the tables go")
    arguments = parser.parse_args()
    results, studies = arguments.results, discover()
    fits = links.collect_fits(results, studies)

    def texts(name: str) -> dict[str, str]:
        return study_tables(results, name, studies, fits if studies[name].has_link else {})

    known = dict(zip(studies, forked_map(texts, studies), strict=True))
    for path, reason in put_together(known, fits, results, arguments.out).items():
        print(f"warning: {path} is left out: {reason}")


if __name__ == "__main__":
    fail_in_one_line(main)
