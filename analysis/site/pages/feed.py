"""The changelog as a feed, which says what is new to those who follow the project."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

import markdown

from analysis.base.errors import FieldError

TITLE: Final = "Hotpath: what is new"
_HEADING: Final = re.compile(r"^## (.*)$", re.MULTILINE)
_DATED: Final = re.compile(r"(\d{4}-\d{2}-\d{2}): (.+)")
_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_DNS, "hotpath.changelog")


@dataclass(frozen=True)
class Entry:
    """What changed: the day, a title, and the rest in Markdown."""

    date: str
    title: str
    text: str


def entries(changelog: str) -> Iterator[Entry]:
    """The sections of a changelog, in its order; FieldError for a heading that is not dated."""
    _, *parts = _HEADING.split(changelog)
    for heading, text in zip(parts[::2], parts[1::2], strict=True):
        found = _DATED.fullmatch(heading)
        if found is None:
            raise FieldError("CHANGELOG.md: heading", "## YYYY-MM-DD: title", heading)
        yield Entry(found[1], found[2], text.strip())


def feed(changelog: str) -> str:
    """An Atom feed of the changelog. It has no addresses, so that it is valid wherever the site is
    put; an entry is known by its date and title."""
    found = list(entries(changelog))
    newest = max((entry.date for entry in found), default="1970-01-01")
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
        f"<title>{TITLE}</title>\n<id>{_NAMESPACE.urn}</id>\n<updated>{_time(newest)}</updated>\n"
        f"<author><name>the Hotpath authors</name></author>\n{''.join(map(_entry, found))}</feed>\n"
    )


def _entry(entry: Entry) -> str:
    name = uuid.uuid5(_NAMESPACE, f"{entry.date} {entry.title}").urn
    content = escape(markdown.markdown(entry.text))
    return (
        f"<entry>\n<title>{escape(entry.title)}</title>\n<id>{name}</id>\n"
        f"<updated>{_time(entry.date)}</updated>\n"
        f'<content type="html">{content}</content>\n</entry>\n'
    )


def _time(date: str) -> str:
    return f"{date}T00:00:00Z"
