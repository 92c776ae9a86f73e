"""The documents of a built site, and their broken links."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


@dataclass
class Document(HTMLParser):
    """An HTML file: its size, elements, ids, links and folded documents."""

    bytes: int = 0
    elements: int = 0
    is_page: bool = False  # made from Markdown, not a fragment
    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    folds: dict[str, str] = field(default_factory=dict)  # addresses by id

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.elements += 1
        self.is_page = self.is_page or "md-content" in given.get("class", "").split()
        self.ids |= {given["id"]} if "id" in given else set()
        named = ("href", "src", "data-spec", "data-fragment")
        self.links += [given[name] for name in named if name in given]
        if "data-fragment" in given:
            self.folds[given.get("id", "")] = given["data-fragment"]


def documents(site: Path) -> dict[str, Document]:
    """Every HTML file of the site by its path."""
    found = {}
    for file in sorted(site.rglob("*.html")):
        text = file.read_text()
        found[file.relative_to(site).as_posix()] = document = Document(len(text.encode()))
        document.feed(text)
    return found


def broken_links(site: Path, whole: dict[str, Document]) -> list[str]:
    """`page: link` for what leads to no file, or to no id of a document. What is folded into a
    document is opened by a link to it. Links to other hosts are not checked."""

    def resolved(base: str, path: str) -> str:
        """The file at `path` relative to the document `base`."""
        joined = posixpath.normpath(posixpath.join(posixpath.dirname(base), path)) if path else base
        return posixpath.join(joined, "index.html") if path.endswith(("/", ".")) else joined

    def has(path: str, anchor: str) -> bool:
        document = whole[path]
        return anchor in {"", *document.ids} or any(
            fold and anchor.startswith(f"{fold}-") and anchor in whole[resolved(path, address)].ids
            for fold, address in document.folds.items()
        )

    def is_alive(base: str, link: str) -> bool:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            return True
        path = resolved(base, unquote(parts.path))
        is_there = (site / path).is_file()
        return is_there and (path not in whole or has(path, unquote(parts.fragment)))

    # The page for missing addresses has links from the root of any site.
    return [
        f"{path}: {link}"
        for path, document in whole.items()
        for link in dict.fromkeys(document.links)
        if path != "404.html" and not is_alive(path, link)
    ]
