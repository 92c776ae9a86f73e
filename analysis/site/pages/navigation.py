"""The order of pages: mkdocs.yml says it, and studies that it leaves out come last among the
journeys."""

from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from analysis.base.reading import read_yaml

CONFIGURATION: Final = "mkdocs.yml"
STUDIES: Final = "studies"
"""The folder of the pages of studies."""
JOURNEYS: Final = "Journeys"
"""The group of those studies that mkdocs.yml does not list."""
OUTSIDE: Final = "Outside the menu"
"""The group of pages that are linked from where they are needed."""

Group = tuple[str, Sequence[str]]
"""A title and its pages; a page by itself has no title."""


def navigation(pages: Path) -> list[Group]:
    """The `nav` of the mkdocs.yml in the folder `pages`, without pages that do not exist, and with
    all pages of studies."""
    listed: list[Group] = []
    for entry in read_yaml(pages / CONFIGURATION)["nav"]:
        listed += entry.items() if isinstance(entry, dict) else [("", [entry])]
    known = {page for _, group in listed for page in group}
    found = {path.relative_to(pages).as_posix() for path in pages.glob(f"{STUDIES}/*.md")}
    others = sorted(found - known)
    extended = [(name, [*group, *(others if name == JOURNEYS else [])]) for name, group in listed]
    kept = [(name, [page for page in group if (pages / page).exists()]) for name, group in extended]
    return [(name, group) for name, group in kept if group]


def sidebar(groups: Iterable[Group]) -> list[str | dict[str, Sequence[str]]]:
    """The menu as mkdocs has it, without the group OUTSIDE."""
    return [{name: group} if name else group[0] for name, group in groups if name != OUTSIDE]


def study_groups(groups: Iterable[Group], studies: Iterable[str]) -> dict[str, list[str]]:
    """The `studies` of each group of pages, in its order; the journeys first, where those without a
    page come last."""
    left = list(studies)
    found: dict[str, list[str]] = {JOURNEYS: []}
    for name, pages in groups:
        paths = [PurePosixPath(page) for page in pages]
        of_group = [one.stem for one in paths if one.parent.name == STUDIES and one.stem in left]
        found[name] = of_group
        left = [study for study in left if study not in of_group]
    found[JOURNEYS] += left
    return {name: of_group for name, of_group in found.items() if of_group}
