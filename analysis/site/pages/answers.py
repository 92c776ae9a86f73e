"""Measured answers on a page: the form, the rules of thumb, and the quality of both."""

import json
from collections.abc import Mapping
from typing import Any, Final

from markupsafe import Markup

from analysis.site.charts.widgets import FORM
from analysis.site.pages.html import PARTS, element, prose, table
from analysis.site.pages.page import Page, macro

GOALS: Final = {"{} of {} ways": (95, 100), "at worst {}": (1, 1.25), "{} of {} times": (90, 100)}
"""Lowest and highest scores, as tables show them, that reach the goals of the answers, in words."""


@macro
def form(page: Page, caption: str, *names: str) -> Markup:
    """One form for some questions, with a table of each for readers without scripts.

    caption: one or two sentences below it
    names: `<study>/<question>`, in the order in which the form offers them
    """
    parts = [
        (f"charts/{name}{FORM}", data["question"], data["label"], _without_script(data))
        for name in names
        for data in _tables(page, name)
        if data["tables"]
    ]
    if not parts:
        raise page.missing("answers to any question")
    return PARTS.form(parts, page.root, caption)


def _tables(page: Page, pattern: str) -> list[dict[str, Any]]:
    """The tables of answers to the questions `<study>/<question>`."""
    paths = sorted(page.staged.drawn.glob(f"{pattern}{FORM}"))
    return [json.loads(path.read_text()) for path in paths]


def _without_script(data: dict[str, Any]) -> Markup:
    """The measured cells of situations in which at most one choice differs from the start."""
    *choices, machine = (field for field in data["fields"] if "options" in field)
    rows = []
    for one in data["tables"]:
        where = one["where"]
        if sum(where[choice["name"]] != choice["start"] for choice in choices) > 1:
            continue
        words = (f"{one['label']} {one['options'][where[one['name']]]}" for one in choices)
        start = {"machine": machine["options"][where["machine"]], "with": ", ".join(words)}
        rows += [{**start, "answer": text} for _, text in sorted(one["cells"])]
    return table(rows, numeric=())


@macro
def rules(page: Page, *studies: str) -> Markup:
    """Rules of thumb, and the share of measured cells in which each holds.

    studies: whose questions have the rules, in this order
    """
    tables = [data for name in studies for data in _tables(page, f"{name}/*")]
    rows = [{**row, "rule": prose(row["rule"])} for data in tables for row in data["rules"]]
    return table(rows, numeric=())


@macro
def answer_quality(page: Page, *studies: str) -> Markup:
    """How often the answers name a way that is nearly the best in held-out cells, and its time;
    below it, the goals that they miss.

    studies: whose questions are asked, in this order
    """
    tables = [data for name in studies for data in _tables(page, f"{name}/*")]
    if not (rows := [row for data in tables for row in data["quality"]]):
        return Markup("<p>No machine has measured the held-out cells yet.</p>")
    of_answers = [row for row in rows if row["by"] == "these answers"]
    missed = "; ".join(filter(None, map(_missed_goals, of_answers)))
    return table(rows) + element("p", f"Missed goals: {missed or 'none'}.")


def _missed_goals(row: Mapping[str, str]) -> str:
    """`scattered pieces on H200, 90 % of 48 ways`, by the scores of a row; empty if none."""
    question, machine, _, cells, *scores = row.values()
    missed = [
        words.format(score, cells)
        for score, (words, (least, most)) in zip(scores, GOALS.items(), strict=True)
        if score and not least <= float(score.rstrip(" %×")) <= most
    ]
    return f"{question} on {machine}, {', '.join(missed)}" if missed else ""
