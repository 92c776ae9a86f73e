"""The macros that pages call, with their arguments."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from jinja2 import Environment

from analysis import ROOT
from analysis.site.pages.macros import MACROS


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
    """All calls of macros of all pages, those of claims that hold and of claims that do not."""
    found: list[Call] = []
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text()
        for holds in (True, False) if "render_macros: false" not in text else ():
            record = partial(_record, found, page, holds)
            Environment().from_string(
                text, {name: partial(record, name) for name in MACROS}
            ).render()
    return found


def _record(
    found: list[Call], page: Path, holds: bool, macro: str, *arguments: Any, **named: Any
) -> bool | str:
    study = named.pop("study", page.stem if page.parent.name == "studies" else "")
    call = Call(page, macro, study, arguments, named)
    if call not in found:
        found.append(call)
    return holds if macro == "holds" else ""


def shown(study: str, macro: str) -> set[str]:
    """The charts or tables of a study that any page shows, in its text or folded at its end."""
    found = set()
    for call in calls():
        if call.study == study and call.macro == macro:
            found.add(call.arguments[0])
        elif call.study == study and call.macro == "evidence":
            found |= {*call.named.get(f"{macro}s", ())}
            found |= {"cases"} if call.arguments and macro == "chart" else set()
    return found
