"""The words pages may use: each macro embeds something made from the results.

On the page of a study (docs/studies/<study>.md) a macro may speak of that study.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from mkdocs.utils import get_relative_url

from analysis import statistics
from analysis.quantities import whole
from analysis.report import agreement, home, ledger, machines, model, study_pages
from analysis.report.chart_figures import chart_figure
from analysis.report.html import link
from analysis.report.staging import Staged
from analysis.report.variants import sections


@dataclass(frozen=True)
class Pages:
    """The pages being built, one after the other, and what was staged for them."""

    env: Any
    staged: Staged

    @property
    def study(self) -> str:
        """The name of the study that the page is about, if it is about one."""
        return PurePosixPath(self.env.page.file.src_uri).stem

    @property
    def root(self) -> str:
        """The root of the site as seen from the page."""
        return self.address("").removesuffix("/") + "/"

    def address(self, path: str) -> str:
        """`path` within the site as seen from the page."""
        return str(get_relative_url(path, self.env.page.url))

    def constant(self, name: str) -> str:
        """A constant of the statistics as it is in the code; shares as percentages."""
        value = getattr(statistics, name)
        return f"{value * 100:g} %" if isinstance(value, float) else whole(value)


Macro = Callable[..., str]

OF_A_STUDY: Final[Mapping[str, Macro]] = {
    "lead": lambda pages, facts: study_pages.lead(facts),
    "chart": lambda pages, facts, name, caption: chart_figure(
        pages.staged, facts, name, caption, pages.address
    ),
    "variants": lambda pages, facts, *roles: sections(facts, roles, pages.root),
    "measured_order": lambda pages, facts: study_pages.order(facts),
    "headroom": lambda pages, facts, claim, bound: study_pages.headroom(facts, claim, bound),
    "metrics": lambda pages, facts, *roles: study_pages.metric_table(facts, roles),
    "published": lambda pages, facts: study_pages.published_table(facts),
    "skipped": lambda pages, facts: study_pages.skipped_table(facts),
    "claims": lambda pages, facts: ledger.claims_of(facts, pages.root),
    "predictions": lambda pages, facts: model.model_table(facts),
    "judgement": lambda pages, facts: model.judgement(facts),
    "counters": lambda pages, facts: model.counter_table(facts),
}
"""By name: what each makes of the pages, the facts of the page's study and its own arguments."""

OF_THE_SITE: Final[Mapping[str, Macro]] = {
    "download": lambda pages, name: link(pages.address(f"data/{name}"), name),
    "constant": lambda pages, name: pages.constant(name),
    "ledger": lambda pages: ledger.ledger(pages.staged.studies, pages.staged.pages, pages.root),
    "link_parameters": lambda pages: model.parameter_table(pages.staged.inputs),
    "agreement": lambda pages: agreement.agreement(pages.staged.inputs),
    "overview": lambda pages: home.overview(pages.staged.studies, pages.staged.pages),
    "freshness": lambda pages: machines.freshness(pages.staged.inputs),
    "machine_table": lambda pages: machines.machine_table(pages.staged.inputs),
    "provenance": lambda pages: machines.provenance_table(pages.staged.inputs),
    "samples": lambda pages: machines.sample_table(
        pages.staged.inputs, pages.staged.files, pages.root
    ),
}
"""By name: what each makes of the pages and its own arguments."""


def define_env(env: Any) -> None:
    """Called by mkdocs-macros; the configuration's `extra.staged` holds what was staged."""
    pages = Pages(env, env.conf["extra"]["staged"])
    for name, macro in OF_A_STUDY.items():
        env.macro(_with_facts(pages, macro), name)
    for name, macro in OF_THE_SITE.items():
        env.macro(_with_pages(pages, macro), name)


def _with_facts(pages: Pages, macro: Macro) -> Macro:
    def called(*arguments: Any) -> str:
        facts = pages.staged.studies.get(pages.study)
        if facts is None:
            return f"This repository has no study named {pages.study} yet."
        return macro(pages, facts, *arguments)

    return called


def _with_pages(pages: Pages, macro: Macro) -> Macro:
    def called(*arguments: Any) -> str:
        return macro(pages, *arguments)

    return called
