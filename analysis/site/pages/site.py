"""Build the whole site from results, tables, charts and pages."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import MkDocsException

from analysis import ROOT
from analysis.base.errors import HotpathError
from analysis.base.files import put_in_place, require_room
from analysis.site.check import Fault, fatal, find_faults
from analysis.site.facts.guarding import guarded, read_left_out
from analysis.site.facts.inputs import Inputs, load_inputs
from analysis.site.interface import OFFERED
from analysis.site.pages.ahead import RenderAhead, warnings
from analysis.site.pages.citing import footer
from analysis.site.pages.common import FIGURES
from analysis.site.pages.html import plain
from analysis.site.pages.llms import llms_text
from analysis.site.pages.navigation import CONFIGURATION, Entry, navigation, sidebar, study_groups
from analysis.site.pages.staging import Staged, stage
from analysis.site.pages.templates import macros
from analysis.study import discover


def build_site(
    tables: Path,
    results: Path,
    charts: Path,
    site: Path,
    root: Path = ROOT,
    published: Collection[str] = (),
) -> list[Fault]:
    """Write the site to the folder `site`, from the studies and docs/ under `root`.

    Works in `tables`/report; what was in `site` stays until the new one is whole. Returns the
    faults that the publication check has found, which the home page lists. Raises HotpathError for
    a fault of the `published` machines, where a page refers to what is not there, or where nothing
    can be written to `tables`/report or beside `site`.
    """
    docs = tables.resolve() / "report"
    site = site.resolve()
    for folder in (docs, site.parent):
        require_room(folder)
    studies = discover(root)
    inputs = load_inputs(tables, results, studies).without(read_left_out(charts))
    pages = root / "docs"
    whole = site.with_name(f".{site.name}.partial")
    entries = navigation(pages)
    groups = study_groups(entries, studies)

    def make(known: Inputs) -> Staged:
        staged = stage(known, groups, pages, tables, charts, docs, published)
        (docs / "llms.txt").write_text(llms_text(docs, entries, known.studies, OFFERED))
        with warnings() as messages:
            try:
                _build(pages, docs, whole, entries, staged)
            except MkDocsException as error:
                why = "; ".join(messages) or error
                raise HotpathError(f"the site was not built: {why}") from error
        return staged

    staged, _ = guarded(inputs, make, FIGURES)
    faults = find_faults(whole, staged.inputs)
    if stopping := fatal(faults, published, staged.inputs):
        lines = "\n".join(map(str, stopping))
        raise HotpathError(f"the site was not published, as it lacks something:\n{lines}")
    add_faults(whole, faults, staged.inputs)
    put_in_place(whole, site)
    return faults


def _build(pages: Path, docs: Path, site: Path, entries: Sequence[Entry], staged: Staged) -> None:
    """Have mkdocs make the site; HotpathError for a mistake in what it renders of a page."""
    config = load_config(
        str(pages / CONFIGURATION),
        docs_dir=str(docs),
        site_dir=str(site),
        nav=sidebar(entries, pages),
        strict=True,
    )
    config.extra["staged"] = staged
    config.extra["footer"] = footer(staged.inputs.studies.values())
    config.plugins["ahead"] = RenderAhead()
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    config.plugins.on_shutdown()


def add_faults(site: Path, faults: Sequence[Fault], inputs: Inputs) -> None:
    """List `faults` at the end of the home page of the built `site`."""
    if not faults:
        return
    home = site / "index.html"
    listed = macros("text.html").faults([plain(fault.sentence(inputs)) for fault in faults])
    text, end, rest = home.read_text().rpartition("</article>")
    home.write_text(f"{text}{listed}{end}{rest}")
