"""Draw the charts of a study.

python -m analysis.charts STUDY --tables build/tables/STUDY --derived build/derived/STUDY
    --results results --out build/charts/STUDY
"""

from __future__ import annotations

import argparse
from pathlib import Path

from analysis.charts import study_charts
from analysis.charts.writing import write_charts
from analysis.cli import fail_in_one_line
from analysis.errors import require_known
from analysis.facts.inputs import load_study_inputs
from analysis.facts.study_facts import StudyFacts
from analysis.study import discover


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m analysis.charts", description="Draw the charts of a study."
    )
    parser.add_argument("study")
    parser.add_argument("--tables", type=Path, required=True, help="of this study")
    parser.add_argument("--derived", type=Path, required=True, help="tables of its code")
    parser.add_argument("--results", type=Path, required=True, help="measured results")
    parser.add_argument("--out", type=Path, required=True, help="where the charts go")
    return parser


def main() -> None:
    arguments = command_line().parse_args()
    studies = discover()
    require_known("study", arguments.study, sorted(studies))
    study = studies[arguments.study]
    inputs = load_study_inputs(arguments.tables, arguments.results, arguments.derived, study)
    write_charts(study_charts(StudyFacts(inputs, study)), arguments.out, study.name)


if __name__ == "__main__":
    fail_in_one_line(main)
