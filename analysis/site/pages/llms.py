"""llms.txt: the pages of the site and its data files with their columns, for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from mkdocs.utils.meta import get_data

from analysis.site.interface import FILES
from analysis.site.pages.navigation import Entry, page_names
from analysis.site.pages.parquet import NAME as PARQUET
from analysis.site.pages.parquet import TYPES
from analysis.study import Study

ABOUT: Final = (
    "Hotpath is a reproducible performance study of the GPU data path: how bytes get from host"
    " memory to the GPU, what each optimisation gains, and how far the result is from the limit of"
    " the link. Every figure is computed from committed samples when the site is built."
)


def llms_text(
    pages: Path, entries: Sequence[Entry], studies: Mapping[str, Study], data: Sequence[str]
) -> str:
    """The text, in Markdown, as https://llmstxt.org describes it; addresses are relative to it.

    `pages` is the folder of pages, `entries` their order, `data` the names of tables in data/.
    """
    lines = [_line(pages, name, studies) for name in page_names(entries)]
    columns = {PARQUET: [*TYPES], **{name: FILES[name] for name in data}}
    files = [f"- [{name}](data/{name}): {', '.join(names)}" for name, names in columns.items()]
    return "\n".join(["# Hotpath", "", f"> {ABOUT}", "", *lines, "", "## Data", "", *files, ""])


def _line(pages: Path, name: str, studies: Mapping[str, Study]) -> str:
    """Title, address and subject of a page: a study's question, or its description."""
    text, keys = get_data((pages / name).read_text())
    path = PurePosixPath(name)
    title = keys.get("title") or text.lstrip().partition("\n")[0].lstrip("# ")
    study = studies.get(path.stem)
    about = study.question if study else str(keys.get("description", ""))
    address = "./" if name == "index.md" else f"{path.with_suffix('')}/"
    return f"- [{title}]({address}): {' '.join(about.split())}".removesuffix(": ")
