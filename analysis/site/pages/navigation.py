"""The order of pages: mkdocs.yml says it, and studies that it leaves out come last among the
journeys."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final

from analysis.base.reading import read_yaml

CONFIGURATION: Final = "mkdocs.yml"
STUDIES: Final = "studies"
"""The folder of the pages of studies."""
JOURNEYS: Final = "Journeys"
"""The group of those studies that mkdocs.yml does not list."""

Entry = str | dict[str, list[str]]
"""A page, or a group of pages under its title."""


def navigation(pages: Path) -> list[Entry]:
    """The `nav` of the mkdocs.yml in the folder `pages`, without pages that are not there, and with
    all pages of studies."""
    entries: list[Entry] = read_yaml(pages / CONFIGURATION)["nav"]
    found = (path.relative_to(pages).as_posix() for path in sorted(pages.glob(f"{STUDIES}/*.md")))
    others = [page for page in found if page not in page_names(entries)]
    absent = {page for page in page_names(entries) if not (pages / page).exists()}
    extended = [
        {title: [*group, *others]} if title == JOURNEYS else entry
        for entry in entries
        for title, group in (entry.items() if isinstance(entry, dict) else [("", [])])
    ]
    return _without(extended, absent)


def sidebar(entries: Iterable[Entry], pages: Path) -> list[Entry]:
    """The `entries` without the pages that the mkdocs.yml in the folder `pages` keeps out."""
    names = read_yaml(pages / CONFIGURATION).get("not_in_nav", "").split()
    return _without(entries, {name.removeprefix("/") for name in names})


def _without(entries: Iterable[Entry], left_out: set[str]) -> list[Entry]:
    kept: list[Entry] = []
    for entry in entries:
        if isinstance(entry, str):
            kept += [entry] if entry not in left_out else []
            continue
        ((title, group),) = entry.items()
        pages = [page for page in group if page not in left_out]
        kept += [{title: pages}] if pages else []
    return kept


def page_names(entries: Iterable[Entry]) -> list[str]:
    """All pages of the navigation, in its order."""
    groups = (entry.values() if isinstance(entry, dict) else [[entry]] for entry in entries)
    return [page for of_entry in groups for pages in of_entry for page in pages]


def study_groups(entries: Iterable[Entry], studies: Iterable[str]) -> dict[str, list[str]]:
    """The `studies` of each group of the navigation, in its order; the journeys first, where those
    without a page come last."""
    groups: dict[str, list[str]] = {JOURNEYS: []}
    left = list(studies)
    for entry in entries:
        if isinstance(entry, dict):
            ((title, pages),) = entry.items()
            groups[title] = [name for name in map(_study_of, pages) if name in left]
            left = [name for name in left if name not in groups[title]]
    groups[JOURNEYS] += left
    return {title: names for title, names in groups.items() if names}


def _study_of(page: str) -> str:
    """The study that a page is of; empty for any other page."""
    path = PurePosixPath(page)
    return path.stem if path.parent.name == STUDIES else ""
