"""Links from the entries of the glossary back to the pages that use them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from mkdocs.utils.meta import get_data

from analysis.site.pages.navigation import STUDIES

GLOSSARY: Final = "glossary.md"
MAX_PAGES: Final = 8
"""A word that more pages have is a general one: only pages that link to its entry are listed."""
_ENTRY: Final = re.compile(r"^### ([^\n{]+)\{: #([\w-]+)\}\n\n.+?(?=\n\n|\n*\Z)", re.M | re.S)
_LINK: Final = re.compile(r"\]\((?:\.\./)?glossary\.md#([\w-]+)\)")
_HEADING: Final = re.compile(r"^# ([^\n{]+)", re.M)


def link_back(pages: Path, order: Sequence[str]) -> None:
    """Add to each entry of the glossary in the folder `pages` a line with the pages that use it.

    order: pages in the order of the navigation; all others come last
    """
    glossary = pages / GLOSSARY
    if not glossary.exists():
        return
    texts = {name: (pages / name).read_text() for name in _ordered(pages, order)}

    def with_pages(entry: re.Match[str]) -> str:
        users = _users(texts, names=entry[1].split(","), anchor=entry[2])
        links = [f"[{_title(name, texts[name])}]({name})" for name in users]
        if not links:
            return entry[0]
        return f"{entry[0]}\n\nUsed in {', '.join(links)}.\n{{: .hp-quiet }}"

    glossary.write_text(_ENTRY.sub(with_pages, glossary.read_text()))


def _users(texts: Mapping[str, str], names: Sequence[str], anchor: str) -> list[str]:
    """The pages that link to an entry, and the studies that have its name if that is not a general
    word."""
    words = "|".join(re.escape(name.partition("(")[0].strip()) for name in names)
    named = re.compile(rf"\b(?:{words})s?\b", re.I)
    linking = [page for page, text in texts.items() if anchor in _LINK.findall(text)]
    having = [
        page
        for page, text in texts.items()
        if page in linking or (_is_study(page) and named.search(text))
    ]
    return having if len(having) <= MAX_PAGES else linking


def _is_study(page: str) -> bool:
    return page.startswith(f"{STUDIES}/")


def _title(page: str, text: str) -> str:
    body, keys = get_data(text)
    heading = _HEADING.search(body)
    return str(keys.get("title") or (heading[1].strip() if heading else page))


def _ordered(pages: Path, order: Sequence[str]) -> Iterator[str]:
    """The pages but the glossary, those of `order` first."""
    names = {path.relative_to(pages).as_posix() for path in pages.rglob("*.md")} - {GLOSSARY}
    listed = [name for name in order if name in names]
    yield from listed
    yield from sorted(names - {*listed})
