"""The page that is being built, and how the macros that pages embed are registered."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeVar

from markupsafe import Markup
from mkdocs.utils import get_relative_url

from analysis.base.errors import FieldError
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.journeys import machines_by_evidence
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.html import PARTS, gap
from analysis.site.pages.staging import Staged


class MissingError(FieldError):
    """A figure, chart or table that a macro needs is missing."""


@dataclass(frozen=True, repr=False)
class Page:
    """The page that is being built, and what was staged for its macros.

    url: within the site, such as `studies/pinning/`
    site: folder of the site, into which a macro may write further pages
    extra: the settings of mkdocs.yml that are for macros
    study: the study that a macro is about, if that is not the page's
    """

    staged: Staged
    url: str
    site: Path
    extra: Mapping[str, Any]
    study: str = ""

    def address(self, path: str) -> str:
        """`path` within the site as seen from this page."""
        return get_relative_url(path, self.url)

    @property
    def root(self) -> str:
        """The root of the site as seen from this page, with a slash at its end."""
        return self.address("").removesuffix("/") + "/"

    @property
    def inputs(self) -> Inputs:
        return self.staged.inputs

    @property
    def _name(self) -> str:
        """The study that a macro is about: `study` or the page's, which has the file's name."""
        return self.study or PurePosixPath(self.url).name

    @property
    def facts(self) -> StudyFacts:
        """The study that a macro is about."""
        if self._name not in self.staged.studies:
            raise self.missing("a study of this repository")
        return self.staged.studies[self._name]

    @property
    def machine(self) -> str:
        """The published machine with most evidence for the study; any other if no published one
        has measured it. Empty without results."""
        order = machines_by_evidence(self.facts)
        published = [one for one in order if one in self.staged.published]
        return next(iter(published or order), "")

    def missing(self, what: str) -> MissingError:
        """The error of a macro that cannot give `what`."""
        return MissingError(self._name or "home", what, "none")

    def write(self, path: str, title: str, content: Markup) -> None:
        """Write `content` to `path` in the site, as a page that needs no script."""
        file = self.site / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(PARTS.page(title, root_from(path), content))

    def fold(
        self, path: str, summary: object, title: str, content: Markup, anchor: str = "", **data: str
    ) -> Markup:
        """Write `content` to `path` in the site and fold it in here. Its links are relative to that
        page.

        `anchor` is an id: that of anything in `content` begins with it and a hyphen, so that a link
        to it opens it. `data` are further `data-` attributes of the fold.
        """
        self.write(path, title, content)
        given = {f"data-{name}": value for name, value in data.items()}
        return PARTS.fold(self.root + path, summary, given | ({"id": anchor} if anchor else {}))


def root_from(path: str) -> str:
    """The root of the site as seen from the page at `path`, with a slash at its end."""
    return "../" * path.count("/") or "./"


Written = TypeVar("Written", bound=Callable[..., str])

MACROS: Final[dict[str, Callable[..., str]]] = {}
"""Every macro by its name: a function of the Page and the arguments that a page passes."""


def macro(function: Written) -> Written:
    """Register a function as a macro; the argument `study` names a study that is not the page's.

    A macro that raises `Page.missing` or returns nothing stops the build. A site without results of
    a published machine, as a trial or of a reader's own machine, has a gap instead.
    """

    @functools.wraps(function)
    def of_page(page: Page, *arguments: Any, study: str = "", **named: Any) -> str:
        page = replace(page, study=study or page.study)
        try:
            if made := function(page, *arguments, **named):
                return made
            raise page.missing(f"a result for {function.__name__}")
        except MissingError as error:
            if page.staged.published:
                raise
            return gap(f"missing: {error}")

    MACROS[function.__name__] = of_page
    return function
