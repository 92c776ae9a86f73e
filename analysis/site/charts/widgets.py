"""Tables of a study's page_tables.py, and forms of the questions in its answers.py."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import pandas as pd
from markupsafe import Markup, escape

from analysis.results.answers.files import answer_table
from analysis.results.answers.judged import quality_rows, rule_text
from analysis.results.answers.question import (
    Choice,
    Question,
    questions_of,
    situations,
    unmeasured,
)
from analysis.site.facts.journeys import machines_by_evidence
from analysis.site.facts.points import NOT_MEASURED
from analysis.site.facts.study_facts import StudyFacts
from analysis.toolchain.modules import load_python

SUFFIX: Final = ".page_table.json"
FORM: Final = ".form.json"


@dataclass(frozen=True)
class PageTable:
    """A table with a header row; `numeric` columns are set right. Without rows, the page shows the
    sentence `empty_text` if the table `may_be_empty`, and is otherwise not built."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    empty_text: str
    numeric: Sequence[str] = ()
    may_be_empty: bool = False


def load_if_any(facts: StudyFacts, name: str) -> Any:
    """The study's module of this name; None without one."""
    is_there = (facts.study.folder / f"{name}.py").exists()
    return load_python(facts.study, name) if is_there else None


def write_page_tables(facts: StudyFacts, folder: Path) -> None:
    """Write the page tables of a study to the folder of its charts, with their cells as HTML. A
    figure that is missing in a column of figures was not measured."""
    module = load_if_any(facts, "page_tables")
    tables: Mapping[str, Callable[[StudyFacts], PageTable]] = module.TABLES if module else {}
    for name, make in tables.items():
        made = make(facts)
        cells = pd.DataFrame([*made.rows], columns=[*made.columns], dtype=object)
        figures = [name for name in made.numeric if (cells[name] != "").any()]
        cells[figures] = cells[figures].replace("", NOT_MEASURED)
        rows = [[*map(escape, row)] for row in cells.itertuples(index=False, name=None)]
        (folder / f"{name}{SUFFIX}").write_text(json.dumps({**vars(made), "rows": rows}))


def read_page_table(folder: Path, name: str) -> PageTable:
    """A table that `write_page_tables` wrote."""
    made: dict[str, Any] = json.loads((folder / f"{name}{SUFFIX}").read_text())
    return PageTable(**{**made, "rows": [[*map(Markup, row)] for row in made["rows"]]})


def form_data(facts: StudyFacts, question: Question) -> dict[str, Any]:
    """The table of all answers to a question, which assets/form.js reads with the `fields` of the
    form; its page's `rules` of thumb and `quality` of answers by machine, most evidence first."""
    inputs, order = facts.inputs, machines_by_evidence(facts)
    found = situations(question, inputs.studies, facts.study, inputs.tables["summary"])
    found.sort(key=lambda here: order.index(here.machine))
    by_machine = {name: [*of] for name, of in groupby(found, lambda here: here.machine)}
    machines = {name: facts.inputs.called(name) for name in by_machine}
    fields: list[dict[str, Any]] = [
        {"name": axis.name, "label": axis.label, "start": axis.text(axis.start)}
        | {"kind": "bytes" if axis.is_bytes else "count"}
        for axis in question.axes
    ]
    for choice in (*question.choices, Choice("machine", "machine", machines)):
        used = {here.where.get(choice.name, here.machine) for here in found}
        options = {value: text for value, text in choice.options.items() if value in used}
        fields.append({"name": choice.name, "label": choice.label, "options": options})
        fields[-1] |= {"start": next(iter(options), ""), "faster": choice.faster}
    return {
        **answer_table(question, found),
        "label": question.label,
        "study": facts.study.name,
        "fields": fields,
        "rules": [
            {"rule": rule.says}
            | {name: rule_text(rule, by_machine[machine]) for machine, name in machines.items()}
            for rule in question.rules
        ],
        "quality": [
            {"question": question.label, "machine": name, **row}
            for machine, name in machines.items()
            for row in quality_rows(question, by_machine[machine])
        ],
    }


def unmeasured_answers(facts: StudyFacts) -> Iterator[tuple[str, str, str]]:
    """Machine, variant and case that answers lack, by `unmeasured`."""
    columns = ["machine", "variant", "case"]
    known = {
        cell
        for table in (facts.summary, facts.skipped)
        for cell in table[columns].itertuples(index=False, name=None)
    }
    for question in questions_of(facts.study):
        yield from unmeasured(question, facts.study, known)


def write_forms(facts: StudyFacts, folder: Path) -> None:
    """Write the answers of a study to the folder of its charts."""
    for question in questions_of(facts.study):
        text = json.dumps(form_data(facts, question), allow_nan=False, separators=(",", ":"))
        (folder / f"{question.name}{FORM}").write_text(text)
