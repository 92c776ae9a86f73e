"""Build the whole site from results, tables and pages."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from markupsafe import escape
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import MkDocsException

from analysis import ROOT
from analysis.base.errors import HotpathError
from analysis.base.files import put_in_place, require_room
from analysis.site.check import Fault, fatal, find_faults
from analysis.site.facts.addresses import claim_anchor
from analysis.site.facts.guarding import guarded, read_left_out
from analysis.site.facts.inputs import Inputs, load_inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.interface import OFFERED
from analysis.site.pages.ahead import RenderAhead, warnings
from analysis.site.pages.badges import outcome
from analysis.site.pages.citing import footer, stage_licence
from analysis.site.pages.common import FIGURES, write_samples
from analysis.site.pages.feed import feed
from analysis.site.pages.glossary import link_back
from analysis.site.pages.html import code, paragraph, plain
from analysis.site.pages.llms import llms_text
from analysis.site.pages.navigation import (
    CONFIGURATION,
    Entry,
    navigation,
    page_names,
    sidebar,
    study_groups,
)
from analysis.site.pages.parquet import NAME as PARQUET
from analysis.site.pages.staging import Staged, stage
from analysis.site.pages.templates import macros
from analysis.study import discover

INDEX: Final = Path("search/search_index.json")
"""Of a site, as mkdocs writes it: sections with `location`, `title` and `text`, which is HTML."""


def build_site(
    tables: Path,
    results: Path,
    site: Path,
    root: Path = ROOT,
    drawn: Path | None = None,
    published: Collection[str] = (),
) -> list[Fault]:
    """Write the site to the folder `site`, from the studies and docs/ under `root`.

    `drawn` has all charts; left out, they are drawn. Works in `tables`/report; what was in `site`
    stays until the new one is whole. Returns the faults that the publication check has found, which
    the home page lists. Raises HotpathError for a fault of the `published` machines, where a page
    refers to what is not there, or where nothing can be written to `tables`/report or beside
    `site`.
    """
    docs = tables.resolve() / "report"
    site = site.resolve()
    for folder in (docs, site.parent):
        require_room(folder)
    studies = discover(root)
    inputs = load_inputs(tables, results, studies)
    inputs = inputs.without(read_left_out(drawn)) if drawn else inputs
    pages = root / "docs"
    whole = site.with_name(f".{site.name}.partial")
    entries = navigation(pages)

    def make(known: Inputs) -> Staged:
        staged = stage(known, study_groups(entries, studies), pages, tables, docs, drawn, published)
        link_back(docs, page_names(entries))
        _stage_for_programs(staged, entries, tables, docs)
        with warnings() as messages:
            try:
                _build(pages, docs, whole, entries, staged)
            except MkDocsException as error:
                why = "; ".join(messages) or error
                raise HotpathError(f"the site was not built: {why}") from error
        return staged

    staged, _ = guarded(inputs, make, FIGURES)
    inputs = staged.inputs
    add_claims(whole, staged.studies.values())
    faults = find_faults(whole, inputs)
    if stopping := fatal(faults, published, inputs):
        lines = "\n".join(map(str, stopping))
        raise HotpathError(f"the site was not published, as it lacks something:\n{lines}")
    add_faults(whole, faults)
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


def _stage_for_programs(staged: Staged, entries: Sequence[Entry], tables: Path, docs: Path) -> None:
    """Add to the pages in `docs`: llms.txt, all samples, a feed of what is new, and the licence."""
    stage_licence(docs)
    if (tables / PARQUET).exists():
        shutil.copy(tables / PARQUET, docs / "data")
    else:
        write_samples(staged.inputs, docs / "data")
    (docs / "llms.txt").write_text(llms_text(docs, entries, staged.inputs.studies, OFFERED))
    changelog = docs / "changelog.md"
    if changelog.exists():
        (docs / "feed.xml").write_text(feed(changelog.read_text()))


def add_claims(site: Path, studies: Iterable[StudyFacts]) -> None:
    """Add the claims of `studies` to the index of the built `site`, each with its address."""
    index = json.loads((site / INDEX).read_text())
    index["docs"] += [entry for facts in studies for entry in _entries(facts)]
    (site / INDEX).write_text(json.dumps(index, ensure_ascii=False, separators=(",", ":")))


def add_faults(site: Path, faults: Sequence[Fault]) -> None:
    """List `faults` at the end of the home page of the built `site`."""
    if not faults:
        return
    home = site / "index.html"
    listed = macros("text.html").faults([plain(str(fault)) for fault in faults])
    text, end, rest = home.read_text().rpartition("</article>")
    home.write_text(f"{text}{listed}{end}{rest}")


def _entries(facts: StudyFacts) -> Iterator[dict[str, str]]:
    for claim in facts.study.claims:
        rows = facts.verdicts.by_claim.get(claim.id, [])
        verdicts = [(facts.verdicts.shown(row), facts.verdicts.in_few(row)) for row in rows]
        text = paragraph(code(claim.id), ": ", outcome(verdicts))
        yield {
            "location": f"ledger/#{claim_anchor(facts.study.name, claim.id)}",
            "title": str(escape(claim.says)),
            "text": str(text),
        }
