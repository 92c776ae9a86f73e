"""The page that is being built, and how the macros that pages embed are registered."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeVar

from markupsafe import Markup
from mkdocs.utils import get_relative_url

from analysis.base.errors import FieldError
from analysis.site.facts.journeys import machines_by_evidence
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.fragments import Place
from analysis.site.pages.html import gap
from analysis.site.pages.staging import Staged


@dataclass(frozen=True, repr=False)  # see Staged
class Page:
    """The page that is being built, and what was staged for its macros."""

    staged: Staged
    env: Any
    study: str = ""
    """The study that a macro is about, if that is not the page's."""

    def address(self, path: str) -> str:
        """`path` within the site as seen from this page."""
        return get_relative_url(path, self.env.page.url)

    @property
    def docs(self) -> Path:
        """The folder of what was staged."""
        return Path(self.env.conf["docs_dir"])

    @property
    def place(self) -> Place:
        """Where this page is, for what is folded into it."""
        root = self.address("").removesuffix("/") + "/"
        return Place(Path(self.env.conf["site_dir"]), root)

    @property
    def stem(self) -> str:
        """The study that a macro is about: `study` or the page's, which has the file's name."""
        return self.study or PurePosixPath(self.env.page.file.src_uri).stem

    def study_address(self, study: str) -> str:
        """The page of a study as seen from this page; empty where it has none."""
        return self.address(f"studies/{study}/") if study in self.staged.pages else ""

    def machine(self, facts: StudyFacts) -> str:
        """The published machine with most evidence for a study; any other if no published one has
        measured it. Empty without results."""
        order = machines_by_evidence(facts)
        published = [one for one in order if one in self.staged.published]
        return next(iter(published or order), "")

    def missing(self, what: str) -> Markup:
        """FieldError for what a macro cannot give. A site without results of a published machine,
        as a trial or of a reader's own machine, has a gap instead."""
        if self.staged.published:
            raise FieldError(self.stem, what, "none")
        return gap(f"missing: {what}")


Written = TypeVar("Written", bound=Callable[..., str])

ABOUT_STUDY: Final = "StudyFacts"
"""The annotation of a macro about one study. Outside of its page, the argument `study` names it."""
GIVEN: Final[Mapping[str, Callable[[Page], Any]]] = {
    "Page": lambda page: page,
    "Place": lambda page: page.place,
    ABOUT_STUDY: lambda page: page.staged.studies.get(page.stem),
    "Inputs": lambda page: page.staged.inputs,
    "Comparison": lambda page: page.staged.comparison,
    "Mapping[str, StudyFacts]": lambda page: page.staged.studies,
    "Mapping[str, Study]": lambda page: page.staged.inputs.studies,
}
"""The value of a macro's parameter by its annotation; a page passes all other arguments."""

MACROS: Final[dict[str, Callable[..., str]]] = {}
"""Every macro by its name: a function of the Page and the arguments that a page passes."""


def macro(name: str = "", *, may_be_empty: bool = False) -> Callable[[Written], Written]:
    """Register a function as a macro with this name, by default the function's. One that returns
    nothing stops the build, as `Page.missing` does, unless it `may_be_empty`."""

    def register(function: Written) -> Written:
        called = name or function.__name__
        parameters = inspect.signature(function).parameters.values()
        kinds = [one.annotation for one in parameters if one.annotation in GIVEN]

        @functools.wraps(function)
        def of_page(page: Page, /, *arguments: Any, **named: Any) -> str:
            if ABOUT_STUDY in kinds:
                page = replace(page, study=named.pop("study", ""))
            given = [GIVEN[kind](page) for kind in kinds]
            if None in given:
                return page.missing(f"a study of this repository, for {called}")
            made = function(*given, *arguments, **named)
            return made if made or may_be_empty else page.missing(f"a result for {called}")

        MACROS[called] = of_page
        return function

    return register
