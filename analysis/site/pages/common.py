"""Draw the charts of every study and those about all, and write all samples as one file."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import duckdb

from analysis import ROOT
from analysis.base.cli import fail_in_one_line, program
from analysis.base.processes import forked_map
from analysis.site.charts import draw_study
from analysis.site.charts.machines import machines_chart
from analysis.site.charts.writing import write_charts, write_engine
from analysis.site.facts.guarding import guarded, read_left_out, write_left_out
from analysis.site.facts.inputs import SAMPLE_TYPES, Inputs, load_inputs, place_of
from analysis.site.pages.navigation import navigation, study_groups
from analysis.site.pages.staging import ALL, SAMPLES, facts_of
from analysis.study import discover

FIGURES: Final = "figures that charts and pages can be made of"
SQL_TYPES: Final = {str: "VARCHAR", int: "INTEGER", float: "DOUBLE"}
READ_SAMPLES: Final = """
INSERT INTO samples BY NAME
SELECT split_part(filename, '/', -3) AS machine, split_part(filename, '/', -2) AS study,
  parse_filename(filename, true) AS run, split_part(metric, ' ', 1) AS metric,
  trim(split_part(metric, ' ', 2), '[]') AS unit, unnest(range(len(cells))) AS sample,
  nullif(unnest(cells), 'none') AS value, coalesce(reason, '') AS reason,
  coalesce(throttle, '') AS throttle,
  COLUMNS('^(variant|case|round|verified|status|sm_mhz|started_at)$')
FROM (
  UNPIVOT (
    SELECT *, if(status = 'ok', NULL, 'none') AS " []"
    FROM read_csv($files, filename = true, union_by_name = true, all_varchar = true,
      header = true, delim = ',', quote = '"', escape = '"')
  ) ON string_split(COLUMNS('\\]$'), ' ') INTO NAME metric VALUE cells
) ORDER BY machine, study, run, variant, "case", metric, round, sample
"""
"""A skipped or failed case has one row, without a value. The program of the tables checks files."""


def draw_all(inputs: Inputs, pages: Path, folder: Path, *others: Callable[[], None]) -> None:
    """Write each study's charts, those about all studies, and their engine to `folder`; and do
    what `others` do meanwhile, in one program. The mkdocs.yml in `pages` orders the studies."""
    (folder / ALL).mkdir(parents=True, exist_ok=True)
    parts: list[Callable[[], None]] = [*others, partial(write_engine, folder)]
    parts += [partial(draw_study, inputs, name, folder / name) for name in inputs.studies]
    forked_map(lambda draw: draw(), parts)
    inputs = inputs.without(read_left_out(folder))

    def draw(known: Inputs) -> None:
        studies = facts_of(known, study_groups(navigation(pages), known.studies))
        charts = {"machines": machines_chart(known, studies.values())}
        write_charts(charts, folder / ALL, known.machine_names)

    _, used = guarded(inputs, draw, FIGURES)
    write_left_out(used, inputs, folder / ALL)


def write_samples(inputs: Inputs, folder: Path) -> None:
    """Write all samples to SAMPLES in `folder`: the machine, then the columns of a sample."""
    types = {"machine": str, **SAMPLE_TYPES}
    declared = ", ".join(f'"{name}" {SQL_TYPES[kind]}' for name, kind in types.items())
    files = [inputs.results / place_of(run) / f"{run.run}.csv" for run in inputs.runs]
    with duckdb.connect() as database:
        database.execute(f"CREATE TABLE samples ({declared})")
        if files:
            database.execute(READ_SAMPLES, {"files": [*map(str, files)]})
        database.table("samples").write_parquet(str(folder / SAMPLES), compression="zstd")


def main() -> None:
    parser = program("analysis.site.pages.common", __doc__)
    parser.add_argument("--tables", type=Path, required=True, help="of all studies")
    parser.add_argument("--results", type=Path, required=True, help="measured results")
    parser.add_argument("--charts", type=Path, required=True, help="folder of all charts")
    parser.add_argument("--samples", type=Path, required=True, help="folder of the samples")
    arguments = parser.parse_args()
    inputs = load_inputs(arguments.tables, arguments.results, discover())
    samples = partial(write_samples, inputs, arguments.samples)
    draw_all(inputs, ROOT / "docs", arguments.charts, samples)


if __name__ == "__main__":
    fail_in_one_line(main)
