"""Draw the charts of a study, and make its widgets and tables."""

from __future__ import annotations

import sys
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from analysis.base.cli import existing_folder, fail_in_one_line, program
from analysis.site.charts import study_charts
from analysis.site.charts.page_tables import write_page_tables
from analysis.site.charts.widgets import write_widgets
from analysis.site.charts.writing import write_charts, write_index
from analysis.site.facts.inputs import load_inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import find_study


def main() -> None:
    parser = program("analysis.site.charts", __doc__)
    parser.add_argument("study")
    parser.add_argument("--tables", type=existing_folder, required=True, help="of this study")
    parser.add_argument("--derived", type=Path, required=True, help="tables of its code")
    parser.add_argument("--results", type=existing_folder, required=True, help="measured results")
    parser.add_argument("--out", type=Path, required=True, help="where the charts go")
    arguments = parser.parse_args()
    study = find_study(arguments.study)
    inputs = load_inputs(
        arguments.tables, arguments.results, {study.name: study}, {study.name: arguments.derived}
    )
    facts = StudyFacts(inputs, study)
    arguments.out.mkdir(parents=True, exist_ok=True)
    # Widgets may take longer than all charts, so a second process writes them.
    write_rest = partial(write_widgets_and_tables, facts, arguments.out)
    writer = get_context("fork").Process(target=fail_in_one_line, args=[write_rest])
    writer.start()
    charts = study_charts(facts)
    index = write_charts(charts, arguments.out, study.name, inputs.machine_names)
    write_index(index, arguments.out)
    writer.join()
    if writer.exitcode:
        sys.exit(writer.exitcode)


def write_widgets_and_tables(facts: StudyFacts, out: Path) -> None:
    """Write the widgets of a study and the tables of its page."""
    write_widgets(facts, out)
    write_page_tables(facts, out)


if __name__ == "__main__":
    fail_in_one_line(main)
