"""Draw the charts of a study, and make its widgets and tables."""

from __future__ import annotations

from pathlib import Path

from analysis.base.cli import existing_folder, fail_in_one_line, program
from analysis.base.forked import forked_map
from analysis.site.charts import draw_study
from analysis.site.charts.page_tables import write_page_tables
from analysis.site.charts.widgets import write_widgets
from analysis.site.charts.writing import write_index
from analysis.site.facts.guarding import guarded, write_left_out
from analysis.site.facts.inputs import Inputs, load_inputs
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
    arguments.out.mkdir(parents=True, exist_ok=True)
    # Widgets may take longer than all charts.
    parts = (write_widgets_and_tables, write_study_charts)

    def write(known: Inputs) -> None:
        facts = StudyFacts(known, study)
        forked_map(lambda write: write(facts, arguments.out), parts)

    _, used = guarded(inputs, write, "figures that charts can be drawn of", study.name)
    write_left_out(used, inputs, arguments.out)


def write_study_charts(facts: StudyFacts, out: Path) -> None:
    """Write the charts of a study, and their index."""
    write_index(draw_study(facts, out), out)


def write_widgets_and_tables(facts: StudyFacts, out: Path) -> None:
    """Write the widgets of a study and the tables of its page."""
    write_widgets(facts, out)
    write_page_tables(facts, out)


if __name__ == "__main__":
    fail_in_one_line(main)
