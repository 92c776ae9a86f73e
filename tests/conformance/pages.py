"""The macros that pages call, with their arguments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, nodes

from analysis import ROOT


@dataclass(frozen=True)
class Call:
    """A call of a macro on a page; `study` is that of the page unless the call names another."""

    page: Path
    macro: str
    study: str
    arguments: tuple[Any, ...] = ()
    named: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}: {self.macro}{self.arguments}"


@cache
def calls() -> list[Call]:
    """All calls of macros with constant arguments, of all pages."""
    return [*_calls()]


def _calls() -> Iterator[Call]:
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text()
        if "render_macros: false" in text:
            continue
        of_page = page.stem if page.parent.name == "studies" else ""
        for call in Environment().parse(text).find_all(nodes.Call):
            if isinstance(call.node, nodes.Name):
                named = {one.key: one.value.as_const() for one in call.kwargs}
                arguments = tuple(one.as_const() for one in call.args)
                study = named.pop("study", of_page)
                yield Call(page, call.node.name, study, arguments, named)


def shown_charts(study: str) -> set[str]:
    """The charts of a study that any page shows, in its text or folded at its end."""
    found = set()
    for call in calls():
        if call.study == study and call.macro == "chart":
            found.add(call.arguments[0])
        elif call.study == study and call.macro == "evidence":
            found |= {*call.named.get("charts", {})} | ({"cases"} if call.arguments else set())
    return found


def shown_tables(study: str) -> set[str]:
    """The tables of a study that any page shows, in its text or folded at its end."""
    found = set()
    for call in calls():
        if call.study == study and call.macro == "table":
            found.add(call.arguments[0])
        elif call.study == study and call.macro == "evidence":
            found |= {*call.named.get("tables", ())}
    return found
