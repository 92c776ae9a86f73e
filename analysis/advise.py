"""Print which way moves data fastest on a machine, by its measured cells.

    python -m analysis.advise pieces --size 24KiB --count 1024
    python -m analysis.advise rows --rows 2048 --pool 40GiB --machine my-box --results results
    python -m analysis.advise pieces --summary answers.json --machine nvidia-h200

The answer is the simplest way within 5 % of the fastest, in the measured cell or between its
neighbours. Without such cells, the command says so and names the nearest one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from analysis.base.cli import fail_in_one_line, program
from analysis.base.errors import FieldError, HotpathError, require_known
from analysis.base.files import write_whole
from analysis.base.quantities import quantity
from analysis.results.answers.files import answer_table, summarised
from analysis.results.answers.question import Question, Situation, questions_of, situations
from analysis.results.answers.rule import Answer, Point
from analysis.results.collect import collect
from analysis.results.tables.summary import summarise
from analysis.study import Study, discover
from analysis.study.config import load_config


def command_line(questions: Sequence[Question]) -> argparse.ArgumentParser:
    """A subcommand for each question, with an option for each axis and choice."""
    parser = program("analysis.advise", __doc__)
    subcommands = parser.add_subparsers(dest="question", required=True, metavar="QUESTION")
    for question in questions:
        one = subcommands.add_parser(question.name, help=question.label, description=question.label)
        for axis in question.axes:
            about = f"{axis.label}, such as {axis.text(axis.start)}"
            one.add_argument(f"--{axis.name}", help=about)
        for choice in question.choices:
            options = list(choice.options)
            about = f"{choice.label} ({options[0]})"
            one.add_argument(f"--{choice.name}", choices=options, default=options[0], help=about)
        one.add_argument("--machine", default="all", help="name of a machine in the results (all)")
        one.add_argument("--results", type=Path, help="folder of the machines' results")
        one.add_argument("--json", action="store_true", help="print objects, one a line")
        one.add_argument("--export", type=Path, metavar="FILE", help="write all answers as JSON")
        one.add_argument("--summary", type=Path, metavar="FILE", help="write a few rows as JSON")
    return parser


def measured(
    question: Question, study: Study, studies: Mapping[str, Study], results: Path
) -> list[Situation]:
    """The situations that machines under `results` have measured."""
    of_both = {name: studies[name] for name in (study.name, question.link[0])}
    summary = summarise(collect(results, of_both, only=of_both).samples, of_both)
    return situations(question, studies, study, summary)


def answer_lines(here: Situation, found: Answer, asked: Point) -> Iterator[str]:
    """The answer, and a line for every way measured in the same cells, the fastest first."""
    about = [f"{here.machine}: {here.question.point_text(asked)}", here.in_words]
    yield ", ".join(filter(None, about))
    yield from here.lines(found)
    yield f"Interpolated: {quantity(found.time_at(asked, found.way), 's')}."
    for way in found.seconds:
        figures = {**here.figures(found, way), "takes": here.question.ways[way].takes}
        yield f"  {way:22} {'; '.join(f'{name}: {text}' for name, text in figures.items() if text)}"


def answer_json(here: Situation, found: Answer | None, asked: Point) -> str:
    """The answer as JSON; the way is null without one."""
    question = here.question
    place = {"machine": here.machine, "question": question.name, **here.where}
    said = {**place, **question.values(asked)}
    if found is None:
        return json.dumps({**said, "way": None, "reason": here.refusal(asked)})
    seconds = {way: found.time_at(asked, way) for way in found.seconds}
    return json.dumps({**said, "way": found.way, "seconds": seconds, "cells": found.corners})


def if_changed(here: Situation, found: Sequence[Situation], asked: Point) -> Iterator[str]:
    """Yield the answer with the faster option of a choice, if another option was asked for and both
    were measured."""
    for choice in here.question.choices:
        where = {**here.where, choice.name: choice.faster}
        for other in found if where != here.where else ():
            is_changed = (other.machine, other.where) == (here.machine, where)
            if is_changed and (answer := other.answer(asked)):
                option = f"{choice.label} {choice.options[choice.faster]}"
                yield f"If {option}: {other.lines(answer)[0]}"


def main() -> None:
    studies = discover()
    known = {q.name: (q, study) for study in studies.values() for q in questions_of(study)}
    arguments = command_line([question for question, _ in known.values()]).parse_args()
    question, study = known[arguments.question]
    found = measured(question, study, studies, arguments.results or load_config({}).results)
    machines = sorted({here.machine for here in found})
    if arguments.machine != "all":
        require_known("--machine", arguments.machine, machines)
        machines = [arguments.machine]
    files = {arguments.export: answer_table, arguments.summary: summarised}
    files.pop(None, None)
    if files and len(machines) != 1:
        raise FieldError("--machine", f"one of {machines}", arguments.machine)
    for path, content in files.items():
        made = content(question, [here for here in found if here.machine == machines[0]])
        write_whole(path, json.dumps({**made, "machine": machines[0]}) + "\n")
    texts = {axis: getattr(arguments, axis.name) or "" for axis in question.axes}
    if not files or any(texts.values()):
        asked = tuple(axis.parse(text) for axis, text in texts.items())
        where = {choice.name: getattr(arguments, choice.name) for choice in question.choices}
        say(question, found, machines, where, asked, arguments.json)


def say(
    question: Question,
    found: Sequence[Situation],
    machines: Sequence[str],
    where: Mapping[str, str],
    asked: Point,
    is_json: bool,
) -> None:
    """Print the answer of each machine; HotpathError if none has one."""
    said, refused = list[str](), list[str]()
    for machine in machines:
        measured_here = (one for one in found if (one.machine, one.where) == (machine, where))
        here = next(measured_here, Situation(question, machine, where, 0.0))
        answer = here.answer(asked)
        if is_json:
            said.append(answer_json(here, answer, asked))
        elif answer:
            said += [*answer_lines(here, answer, asked), *if_changed(here, found, asked)]
        else:
            place = ", ".join(filter(None, [machine, here.in_words]))
            refused.append(f"{place}: {here.refusal(asked)}")
    if not said:
        raise HotpathError(next(iter(refused), f"{question.name}: no fresh results"))
    print(*said, *refused, sep="\n")


if __name__ == "__main__":
    fail_in_one_line(main)
