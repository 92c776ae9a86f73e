"""Renders the macros of all pages before mkdocs reads these, by several processes."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from jinja2 import Environment, TemplateError, TemplateSyntaxError, nodes
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import BasePlugin
from mkdocs.structure.files import Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

from analysis.base.errors import HotpathError
from analysis.base.forked import forked_map
from analysis.base.isolating import UNFORESEEN, UnforeseenError
from analysis.site.pages.navigation import STUDIES

MACROS: Final = "macros"
"""Name of the plugin that renders macros."""
MADE: Final = ("content", "toc", "_title_from_render", "present_anchor_ids")
"""Attributes of a page that mkdocs sets when it renders it."""
log: Final = logging.getLogger("mkdocs.structure.pages")


class Rendered(NamedTuple):
    """A page as another process has rendered it: its metadata, to which macros may add, its text
    with the macros' output, what mkdocs makes of that, and the warnings."""

    metadata: dict[str, Any]
    text: str
    made: dict[str, Any]
    links: dict[str, dict[str, str]]
    messages: list[str]


class RenderAhead(BasePlugin):  # type: ignore[no-untyped-call, type-arg]
    """A plugin of mkdocs that renders all pages by forked processes. It comes after the macros'
    plugin. HotpathError for a mistake in a macro."""

    def __init__(self) -> None:
        self._rendered: dict[str, Rendered] = {}

    def on_nav(self, nav: Navigation, *, config: MkDocsConfig, files: Files) -> Navigation:
        """Render every page."""
        pages = [file.page or Page(None, file, config) for file in files.documentation_pages()]
        # Pages about all studies take longest, then long ones.
        longest_first = sorted(pages, key=lambda page: (_is_of_study(page), -_length(page)))
        rendered = forked_map(lambda page: _rendered(page, config, files), longest_first)
        for page, one in zip(longest_first, rendered, strict=True):
            self._rendered[page.file.src_uri] = one
        return nav

    def on_page_read_source(self, *, page: Page, config: MkDocsConfig) -> str | None:
        """The rendered text of a page, which the macros' plugin is to leave alone."""
        found = self._rendered.get(page.file.src_uri)
        return found and f"---\nrender_macros: false\n---\n{found.text}"

    def on_page_markdown(
        self, markdown: str, *, page: Page, config: MkDocsConfig, files: Files
    ) -> str:
        """The text unchanged. The page gets its metadata, and shows what was rendered ahead."""
        found = self._rendered[page.file.src_uri]
        page.meta = found.metadata

        def render(config: MkDocsConfig, files: Files) -> None:
            vars(page).update(found.made)
            page.links_to_anchors = {
                file: links for file in files if (links := found.links.get(file.src_uri))
            }
            for message in found.messages:
                log.warning(message)

        page.render = render  # type: ignore[method-assign]
        return markdown


def _is_of_study(page: Page) -> bool:
    return page.file.src_uri.startswith(f"{STUDIES}/")


def _length(page: Page) -> int:
    return len(page.file.content_string)


def _rendered(page: Page, config: MkDocsConfig, files: Files) -> Rendered:
    page.read_source(config)
    if page.meta.get("render_macros", True):
        require_otherwise(page)
    macros: Any = config.plugins[MACROS]
    try:
        text = macros.on_page_markdown(page.markdown, page=page, config=config, files=files)
    except SystemExit as stop:  # of the macros' plugin, while it handles the mistake
        mistake = in_page(page, stop.__context__)
        is_unforeseen = isinstance(stop.__context__, UNFORESEEN)
        error = UnforeseenError if is_unforeseen else HotpathError
        raise error(f"the site was not built: {mistake}") from stop
    page.markdown = text
    with warnings() as messages:
        page.render(config, files)
    links = {file.src_uri: links for file, links in (page.links_to_anchors or {}).items()}
    made = {name: vars(page)[name] for name in MADE}
    return Rendered(dict(page.meta), text, made, links, messages)


def require_otherwise(page: Any) -> None:
    """HotpathError for text that a page has only if a claim `holds`, without an `else`: where the
    claim does not hold, readers would miss it."""
    for condition in Environment().parse(page.markdown).find_all(nodes.If):
        names = {one.name for one in nodes.Tuple([condition.test], "load").find_all(nodes.Name)}
        if "holds" in names and not condition.else_:
            line = condition.lineno + _lines_of_metadata(page)
            raise HotpathError(
                f"the site was not built: docs/{page.file.src_path}: line {line}: expected"
                " {% else %} with the text for a claim that does not hold, got none"
            )


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


def in_page(page: Any, mistake: BaseException | None) -> str:
    """The message of a mistake in a page, with the page's file and line."""
    where = f"docs/{page.file.src_path}"
    if line := _line(mistake):
        where += f": line {line + _lines_of_metadata(page)}"
    is_plain = isinstance(mistake, (HotpathError, TemplateError))
    return f"{where}: {mistake if is_plain else repr(mistake)}"


def _line(mistake: BaseException | None) -> int | None:
    """1-based line of the template with the syntax error or the failing call."""
    if isinstance(mistake, TemplateSyntaxError):
        return mistake.lineno
    frames = traceback.extract_tb(mistake.__traceback__ if mistake else None)
    return next((frame.lineno for frame in frames if frame.filename == "<template>"), None)


def _lines_of_metadata(page: Any) -> int:
    """How many lines of a page's file are above the text that is rendered."""
    return int(page.file.content_string.count("\n") - page.markdown.count("\n"))
