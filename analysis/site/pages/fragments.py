"""Evidence as separate pages that other pages fold in and load on demand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from markupsafe import Markup

from analysis.site.pages.templates import macros

ASSETS: Final = ("hotpath.css", "fragment.css")
_EVIDENCE: Final = macros("evidence.html")


def root_from(path: str) -> str:
    """The root of the site as seen from the page at `path`, with a slash at its end."""
    return "../" * path.count("/") or "./"


@dataclass(frozen=True)
class Place:
    """Where a page is in the site that is being built.

    `site` is the site's folder, `root` its address as seen from the page, with a slash at its end.
    """

    site: Path
    root: str

    def folded(
        self, path: str, summary: str, title: str, content: Markup, *, anchor: str = "", **data: str
    ) -> Markup:
        """Write `content` to `path` in the site, as a page called `title`, and fold it in here.

        Links in `content` are relative to the written page. `anchor` is an id: that of anything
        in `content` begins with it and a hyphen, so that a link to it opens it. `data` are further
        `data-` attributes of the fold.
        """
        self.write_page(path, title, content)
        given = {f"data-{name}": value for name, value in data.items()}
        if anchor:
            given["id"] = anchor
        return _EVIDENCE.fold(self.root + path, summary, given)

    def write_page(self, path: str, title: str, content: Markup) -> None:
        """Write `content` as a page of the site that needs no script."""
        self.write(path, _EVIDENCE.page(title, root_from(path), ASSETS, content))

    def write(self, path: str, text: str) -> None:
        """Write a file of the site."""
        file = self.site / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
