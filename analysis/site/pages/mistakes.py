"""Mistakes in pages, each in one line that names the page."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jinja2 import TemplateError, TemplateSyntaxError

from analysis.base.errors import HotpathError


@contextmanager
def warnings() -> Iterator[list[str]]:
    """Collect the warnings of mkdocs, such as broken links."""
    messages: list[str] = []
    keeper = logging.Handler(logging.WARNING)
    keeper.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("mkdocs")
    logger.addHandler(keeper)
    try:
        yield messages
    finally:
        logger.removeHandler(keeper)


def in_page(page: Any, mistake: BaseException | None) -> str:
    """A mistake in what Jinja renders of a page of mkdocs."""
    where = f"docs/{page.file.src_path}"
    if line := _line(mistake):
        where += f": line {line + _lines_of_metadata(page)}"
    is_plain = isinstance(mistake, (HotpathError, TemplateError))
    return f"{where}: {mistake if is_plain else repr(mistake)}"


def _line(mistake: BaseException | None) -> int | None:
    """Of what Jinja renders, counted from 1: where it cannot be read, or calls what fails."""
    if isinstance(mistake, TemplateSyntaxError):
        return mistake.lineno
    frames = traceback.extract_tb(mistake.__traceback__ if mistake else None)
    return next((frame.lineno for frame in frames if frame.filename == "<template>"), None)


def _lines_of_metadata(page: Any) -> int:
    """How many lines of a page's file are above the text that is rendered."""
    return int(page.file.content_string.count("\n") - page.markdown.count("\n"))
