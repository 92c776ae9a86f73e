"""Jinja templates of the HTML that pages embed."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, Protocol, cast

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.ext import Extension
from markupsafe import Markup

FOLDER: Final = Path(__file__).parents[1] / "templates"


class Macros(Protocol):
    """The macros of a template."""

    def __getattr__(self, name: str) -> Callable[..., Markup]: ...


class _OneLine(Extension):
    """Joins the lines of a template: Markdown would end the HTML at a blank or indented line.

    A line break beside `<`, `>`, `{` or `}` is left out, any other becomes a space.
    """

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        without = re.sub(r"(?<=[>}])\s*\n\s*|\s*\n\s*(?=[<{])", "", source)
        return re.sub(r"\s*\n\s*", " ", without)


_TEMPLATES: Final = Environment(
    loader=FileSystemLoader(FOLDER),
    extensions=[_OneLine],
    autoescape=True,
    undefined=StrictUndefined,
)
_TEMPLATES.globals["zip"] = partial(zip, strict=True)


def macros(template: str) -> Macros:
    """The macros of a file in templates/; what is not Markup is escaped."""
    return cast(Macros, _TEMPLATES.get_template(template).module)
