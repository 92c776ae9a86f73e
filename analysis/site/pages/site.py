"""Build the whole site from results, tables, charts and pages."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import MkDocsException

from analysis import ROOT
from analysis.base.errors import HotpathError
from analysis.base.files import remove, require_room
from analysis.base.quantities import listing, whole
from analysis.base.reading import read_yaml
from analysis.site.check import Fault, fatal, find_faults
from analysis.site.facts.guarding import guarded, read_left_out
from analysis.site.facts.inputs import Inputs, load_inputs
from analysis.site.pages.common import FIGURES
from analysis.site.pages.html import code, element, folded, plain, table
from analysis.site.pages.navigation import CONFIGURATION, navigation, sidebar, study_groups
from analysis.site.pages.plugin import MacrosPlugin, warnings
from analysis.site.pages.staging import Staged, stage
from analysis.study import discover

INTRODUCTION: Final = (
    "What is newer than a machine's last run has no result there. The command of each row, run on"
    " such a machine, measures only what is missing."
)


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
    listed = navigation(pages)
    groups = study_groups(listed, studies)
    settings = {"docs_dir": str(docs), "site_dir": str(whole), "nav": sidebar(listed)}

    def make(known: Inputs) -> Staged:
        staged = stage(known, groups, pages, tables, charts, docs, published)
        with warnings() as messages:
            try:
                _build(pages / CONFIGURATION, settings, staged)
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
    remove(site)
    whole.rename(site)
    return faults


def _build(configuration: Path, settings: Mapping[str, Any], staged: Staged) -> None:
    """Have mkdocs make the site; HotpathError for a mistake in a macro."""
    config = load_config(str(configuration), strict=True, **settings)
    known = read_yaml(ROOT / "CITATION.cff")
    write_ups = [one.write_up for one in staged.inputs.studies.values() if one.write_up]
    addresses = {one.title: one.address or "" for one in write_ups}
    config.extra["footer"] = {
        "authors": listing([one["name"] for one in known["authors"]]),
        "licence": known["license"],
        "write_ups": [{"title": title, "address": at} for title, at in addresses.items()],
    }
    config.plugins["macros"] = MacrosPlugin(staged)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    config.plugins.on_shutdown()


def add_faults(site: Path, faults: Sequence[Fault], inputs: Inputs) -> None:
    """List `faults`, folded, at the end of the home page of the built `site`."""
    if not faults:
        return
    home = site / "index.html"
    listed = gaps(faults, inputs)
    text, end, rest = home.read_text().rpartition("</article>")
    home.write_text(Markup("").join(map(Markup, (text, listed, end, rest))))


def gaps(faults: Sequence[Fault], inputs: Inputs) -> Markup:
    """A folded section: a row for each machine and study, with what fills its gaps; below it,
    folded, each of the `faults`."""
    lines = (element("li", plain(str(fault))) for fault in faults)
    every = folded("Each of them, as the check words it", element("ul", *lines, class_="hp-faults"))
    title = element("summary", element("h2", f"What is missing: {len(faults)}", id="faults"))
    content = element("p", INTRODUCTION), table(_rows(faults, inputs)), every
    return element("details", title, *content, class_="hp-section")


def _rows(faults: Sequence[Fault], inputs: Inputs) -> Iterator[dict[str, object]]:
    """Cells of a machine and study: its number of faults, and what fills the gaps."""

    def place(fault: Fault) -> tuple[str, str]:
        return fault.machine, fault.study

    for (machine, name), group in groupby(sorted(faults, key=place), place):
        study = inputs.studies.get(name)
        chosen = f" 'studies=[\"{name}\"]'" if name else ""
        command = f"env/run snakemake --cores 8 --config machine={machine}{chosen}"
        yield {
            "machine": inputs.called(machine) if machine else "none alone",
            "study": study.title if study else "several",
            "faults": whole(len([*group])),
            "what fills them": code(command) if machine else "a change of the page or the study",
        }
