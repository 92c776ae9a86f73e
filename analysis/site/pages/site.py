"""Build the whole site from results, tables and pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import MkDocsException

from analysis import ROOT
from analysis.base.errors import HotpathError
from analysis.base.files import remove_together, require_room
from analysis.site.facts.inputs import load_inputs
from analysis.site.interface import OFFERED
from analysis.site.pages.feed import feed
from analysis.site.pages.llms import llms_text
from analysis.site.pages.mistakes import in_page, warnings
from analysis.site.pages.navigation import CONFIGURATION, Entry, navigation, study_groups
from analysis.site.pages.parquet import NAME as PARQUET
from analysis.site.pages.parquet import write_parquet
from analysis.site.pages.search import add_claims
from analysis.site.pages.staging import Staged, stage
from analysis.study import discover


def build_site(
    tables: Path,
    results: Path,
    modules: Path,
    site: Path,
    root: Path = ROOT,
    drawn: Path | None = None,
) -> None:
    """Write the site to the folder `site`, from the studies and docs/ under `root`.

    `drawn` has all charts; left out, they are drawn. Works in `tables`/report; what was in `site`
    stays until the new one is whole. Raises HotpathError where a page refers to what is not there,
    or where nothing can be written to `tables`/report or beside `site`.
    """
    docs = tables.resolve() / "report"
    site = site.resolve()
    for folder in (docs, site.parent):
        require_room(folder)
    studies = discover(root)
    inputs = load_inputs(tables, results, modules, studies)
    pages = root / "docs"
    whole = site.with_name(f".{site.name}.partial")
    entries = navigation(pages)
    staged = stage(inputs, study_groups(entries, studies), pages, tables, docs, drawn)
    _stage_for_programs(staged, entries, docs)
    with warnings() as messages:
        try:
            _build(pages, docs, whole, entries, staged)
        except MkDocsException as error:
            raise HotpathError(f"the site was not built: {'; '.join(messages) or error}") from error
    add_claims(whole, staged.studies.values())
    if site.exists():
        remove_together(site)
    whole.rename(site)


def _build(pages: Path, docs: Path, site: Path, entries: Sequence[Entry], staged: Staged) -> None:
    """Have mkdocs make the site; HotpathError for a mistake in what it renders of a page."""
    config = load_config(
        str(pages / CONFIGURATION),
        docs_dir=str(docs),
        site_dir=str(site),
        nav=entries,
        strict=True,
    )
    config.extra["staged"] = staged
    config.plugins.on_startup(command="build", dirty=False)
    try:
        build(config)
    except MkDocsException:  # some are a SystemExit, too
        raise
    except SystemExit as stop:  # of the macros' plugin, while it handles the mistake
        macros: Any = config.plugins["macros"]
        mistake = in_page(macros.page, stop.__context__)
        raise HotpathError(f"the site was not built: {mistake}") from stop
    config.plugins.on_shutdown()


def _stage_for_programs(staged: Staged, entries: Sequence[Entry], docs: Path) -> None:
    """Add what programs read to the pages in `docs`: llms.txt, all samples, and a feed of what is
    new."""
    data = docs / "data"
    samples = [
        data / machine / study / names[0] for (machine, study, _), names in staged.files.items()
    ]
    write_parquet(samples, data / PARQUET)
    (docs / "llms.txt").write_text(llms_text(docs, entries, staged.inputs.studies, OFFERED))
    changelog = docs / "changelog.md"
    if changelog.exists():
        (docs / "feed.xml").write_text(feed(changelog.read_text()))
