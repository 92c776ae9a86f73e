"""llms.txt: what the site is, its pages, and its data files with their columns, for programs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from mkdocs.utils.meta import get_data

from analysis.site.interface import FILES
from analysis.site.pages.navigation import Entry
from analysis.site.pages.parquet import NAME as PARQUET
from analysis.site.pages.parquet import TYPES
from analysis.study import Study

ABOUT: Final = (
    "Hotpath is a reproducible performance study of the GPU data path: how bytes get from host"
    " memory to the GPU, what each optimisation gains, and how far the result is from the limit of"
    " the link. Every figure is computed from committed samples when the site is built."
)
_LINK: Final = re.compile(r"\[([^]]*)\]\([^)]*\)")


def llms_text(
    pages: Path, entries: Sequence[Entry], studies: Mapping[str, Study], data: Sequence[str]
) -> str:
    """The text, in Markdown, as https://llmstxt.org describes it; addresses are relative to it.

    `pages` is the folder of pages, `entries` their order, `data` the names of tables in data/.
    """
    parts = ["# Hotpath", f"> {ABOUT}"]
    for entry in entries:
        group = {"Start": [entry]} if isinstance(entry, str) else entry
        for title, names in group.items():
            lines = (_page_line(pages / name, name, studies) for name in names)
            parts += [f"## {title}", "\n".join(lines)]
    return "\n\n".join([*parts, "## Data", "\n".join(_data_lines(data))]) + "\n"


def _page_line(file: Path, name: str, studies: Mapping[str, Study]) -> str:
    path = PurePosixPath(name)
    text, keys = get_data(file.read_text())
    study = studies.get(path.stem) if path.parent.name else None
    heading, _, rest = text.lstrip().partition("\n")
    title = keys.get("title", heading)
    about = study.question if study else keys.get("description") or _first_sentence(rest)
    address = "./" if path.stem == "index" else f"{path.with_suffix('').as_posix()}/"
    return f"- [{title.lstrip('# ')}]({address}): {' '.join(about.split())}"


def _first_sentence(text: str) -> str:
    """Of the first paragraph that is prose."""
    paragraphs = (" ".join(part.split()) for part in text.split("\n\n"))
    prose = next((part for part in paragraphs if re.match(r"[A-Z]", part)), "")
    return re.split(r"(?<=\.)\s", _LINK.sub(r"\1", prose))[0]


def _data_lines(tables: Sequence[str]) -> list[str]:
    columns = {f"data/{PARQUET}": list(TYPES)}
    columns |= {f"data/{name}": list(FILES[name]) for name in tables}
    columns |= {
        f"data/<machine>/<study>/{name}": list(FILES[name])
        for name in FILES
        if name.startswith("<variant>")
    }
    return [
        f"- {f'[{path}]({path})' if '<' not in path else f'`{path}`'}: {', '.join(names)}"
        for path, names in columns.items()
    ]
