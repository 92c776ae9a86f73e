"""The plugin of mkdocs that renders a page's macros, before mkdocs renders its Markdown."""

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, StrictUndefined, TemplateError, TemplateSyntaxError
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import BasePlugin
from mkdocs.structure.files import Files
from mkdocs.structure.nav import Navigation

from analysis.base.errors import UNFORESEEN, HotpathError, UnforeseenError
from analysis.base.processes import forked_map
from analysis.site.pages.macros import MACROS
from analysis.site.pages.page import Page
from analysis.site.pages.staging import Staged

_JINJA: Final = Environment(undefined=StrictUndefined, keep_trailing_newline=True)


class MacrosPlugin(BasePlugin):  # type: ignore[no-untyped-call, type-arg]
    """Renders every page as a template of Jinja, unless its metadata have `render_macros: false`.
    HotpathError for a mistake in a macro, with the page and the line."""

    def __init__(self, staged: Staged) -> None:
        self._staged = staged
        self._rendered: dict[str, str] = {}

    def on_nav(self, nav: Navigation, *, config: MkDocsConfig, files: Files) -> None:
        """Renders all pages, in several processes as that takes most of the time of a site."""
        pages = [file.page for file in files.documentation_pages()]
        texts = forked_map(lambda page: self._render(page, config), pages)
        self._rendered = dict(zip((page.url for page in pages if page), texts, strict=True))

    def on_page_markdown(
        self, markdown: str, *, page: Any, config: MkDocsConfig, files: Files
    ) -> str:
        """The Markdown with the output of the macros."""
        return self._rendered[page.url]

    def _render(self, page: Any, config: MkDocsConfig) -> str:
        page.read_source(config)
        markdown: str = page.markdown
        if not page.meta.get("render_macros", True):
            return markdown
        known = Page(self._staged, page.url, Path(config.site_dir), config.extra)
        names = {name: partial(function, known) for name, function in MACROS.items()}
        try:
            return _JINJA.from_string(markdown, names).render()
        except (TemplateError, HotpathError, *UNFORESEEN) as error:
            kind = UnforeseenError if isinstance(error, UNFORESEEN) else HotpathError
            raise kind(f"the site was not built: {_in_page(page, error)}") from error


def _in_page(page: Any, mistake: Exception) -> str:
    """The message of a mistake, with the page's file and its 1-based line."""
    frames = traceback.extract_tb(mistake.__traceback__)
    line = next((one.lineno for one in frames if one.filename == "<template>"), None)
    message = str(mistake) if isinstance(mistake, HotpathError | TemplateError) else repr(mistake)
    if isinstance(mistake, TemplateSyntaxError):
        line, message = mistake.lineno, str(mistake.message)
    metadata = page.file.content_string.count("\n") - page.markdown.count("\n")
    where = f"docs/{page.file.src_path}" + (f": line {line + metadata}" if line else "")
    return f"{where}: {message}"


@contextmanager
def warnings() -> Iterator[list[str]]:
    """Collect the warnings of mkdocs, such as broken links, and keep them from other handlers."""
    messages: list[str] = []
    keeper = logging.Handler(logging.WARNING)
    keeper.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("mkdocs")
    others, logger.handlers = logger.handlers, [keeper]
    try:
        yield messages
    finally:
        logger.handlers = others
