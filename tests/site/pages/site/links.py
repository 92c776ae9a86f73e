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

    path: str
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
        if "id" in given:
            self.ids.add(given["id"])
        self.links += [given[name] for name in ("href", "src", "data-spec") if name in given]
        if "data-fragment" in given:
            self.links.append(given["data-fragment"])
            self.folds[given.get("id", "")] = given["data-fragment"]


def documents(site: Path) -> dict[str, Document]:
    """Every HTML file of the site by its path."""
    found = {}
    for file in sorted(site.rglob("*.html")):
        path, text = file.relative_to(site).as_posix(), file.read_text()
        found[path] = document = Document(path, len(text.encode()))
        document.feed(text)
    return found


def broken_links(site: Path, whole: dict[str, Document]) -> list[str]:
    """`page: link` for what leads to no file, or to no id of a document. What is folded into a
    document is opened by a link to it."""
    # The page for missing addresses has links from the root of any site.
    documents = [one for path, one in whole.items() if path != "404.html"]
    return [
        f"{document.path}: {link}"
        for document in documents
        for link in dict.fromkeys(document.links)
        if not _is_alive(site, whole, document, link)
    ]


def _is_alive(site: Path, whole: dict[str, Document], document: Document, link: str) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True  # on another host, which is not checked
    path = _resolved(document.path, unquote(parts.path))
    if not (site / path).is_file():
        return False
    return path not in whole or _has(whole, path, unquote(parts.fragment))


def _resolved(base: str, path: str) -> str:
    """The file at `path` relative to the document `base`."""
    if not path:
        return base
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(base), path))
    return posixpath.join(joined, "index.html") if path.endswith(("/", ".")) else joined


def _has(whole: dict[str, Document], path: str, anchor: str) -> bool:
    document = whole[path]
    if not anchor or anchor in document.ids:
        return True
    return any(
        anchor.startswith(f"{fold}-") and anchor in whole[_resolved(path, address)].ids
        for fold, address in document.folds.items()
        if fold
    )
