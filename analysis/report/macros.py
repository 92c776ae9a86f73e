"""The words pages may use: each macro embeds something made from the results.

On the page of a study (docs/studies/<study>.md) a macro speaks of that study.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.utils import get_relative_url

from analysis import statistics
from analysis.facts.points import CASE_PREFIX, Context
from analysis.quantities import digits, quantity, ratio, whole
from analysis.report import evidence, ledger, model, site_pages, study_pages
from analysis.report.html import Markup, data_table, figure, link
from analysis.report.staging import Staged

StudyMacro = Callable[..., str]


def define_env(env: Any) -> None:
    """Called by mkdocs-macros; the configuration's `extra.staged` holds what was staged."""
    staged: Staged = env.conf["extra"]["staged"]
    inputs = staged.inputs
    docs = Path(env.conf["docs_dir"])
    built = evidence.read_machine_code(docs.parent / "machine_code.csv")
    files = evidence.stage_sources(inputs, staged.samples, docs / "data")

    def address(path: str) -> str:
        """`path` within the site as seen from the page being built."""
        return get_relative_url(path, env.page.url)

    def root() -> str:
        return address("").removesuffix("/") + "/"

    def of_study(macro: StudyMacro) -> StudyMacro:
        """Register `macro` with the study of the page as its first argument."""

        @functools.wraps(macro)
        def called(*arguments: Any) -> str:
            name = PurePosixPath(env.page.file.src_uri).stem
            if name not in staged.contexts:
                return f"This repository has no study named {name} yet."
            return macro(staged.contexts[name], *arguments)

        env.macro(called)
        return called

    @of_study
    def lead(context: Context) -> str:
        return study_pages.lead(context)

    @of_study
    def chart(context: Context, name: str, caption: str) -> str:
        return _chart(staged, context, name, caption, address)

    @of_study
    def variants(context: Context, *roles: str) -> str:
        return study_pages.sections(context, roles, root(), built=built)

    @of_study
    def measured_order(context: Context) -> str:
        return study_pages.order(context)

    @of_study
    def headroom(context: Context, claim: str, bound: str) -> str:
        return study_pages.headroom(context, claim, bound)

    @of_study
    def metrics(context: Context, *roles: str) -> str:
        return study_pages.metric_table(context, roles)

    @of_study
    def published(context: Context) -> str:
        return study_pages.published_table(context)

    @of_study
    def skipped(context: Context) -> str:
        return study_pages.skipped_table(context)

    @of_study
    def claims(context: Context) -> str:
        return ledger.claims_of(context, root())

    @of_study
    def predictions(context: Context) -> str:
        return model.model_table(context)

    @of_study
    def judgement(context: Context) -> str:
        return model.judgement(context)

    @of_study
    def counters(context: Context) -> str:
        return model.counter_table(context)

    def download(name: str) -> str:
        return link(address(f"data/{name}"), name)

    def constant(name: str) -> str:
        """A constant of the statistics as it is in the code; shares as percentages."""
        value = getattr(statistics, name)
        return f"{value * 100:g} %" if isinstance(value, float) else whole(value)

    env.macro(download)
    env.macro(constant)
    env.macro(lambda: ledger.ledger(staged.contexts, staged.pages, root()), "ledger")
    env.macro(lambda: model.parameter_table(inputs), "link_parameters")
    env.macro(lambda: site_pages.agreement(inputs), "agreement")
    env.macro(lambda: site_pages.overview(staged.contexts, staged.pages), "overview")
    env.macro(lambda: site_pages.freshness(inputs), "freshness")
    env.macro(lambda: site_pages.machine_table(inputs), "machine_table")
    env.macro(lambda: site_pages.provenance_table(inputs), "provenance")
    env.macro(lambda: site_pages.sample_table(inputs, files, root()), "samples")


def _chart(
    staged: Staged, context: Context, name: str, caption: str, address: Callable[[str], str]
) -> str:
    study = context.study.name
    if name not in staged.charts[study]:
        return study_pages.NOTHING if not context.machines else "Nothing to draw yet."
    staged_chart = staged.charts[study][name]
    return figure(
        spec=address(f"charts/{study}/{name}.json"),
        root=address(""),
        description=staged_chart.description,
        caption=caption,
        csv=address(f"charts/{study}/{name}.csv"),
        data=Markup(data_table(staged_chart.data, _formats(staged_chart.data.columns))),
    )


def _formats(columns: Any) -> dict[str, tuple[str, Callable[..., object]]]:
    """Names and number formats of the columns of a chart's data; others are shown as they are."""
    known: dict[str, tuple[str, Callable[..., object]]] = {
        "seconds": ("time", lambda value: quantity(value, "s")),
        "rate": ("GB/s", digits),
        "payload_bytes": ("payload, B", whole),
        "n": ("samples", whole),
        "rounds": ("rounds", whole),
        "throttled": ("throttled", lambda value: f"{value:.0%}"),
        "verified": ("verified", lambda value: "yes" if value else "no"),
        "ratio": ("ratio", ratio),
        "clock": ("clock", str),
    }
    hidden = {
        *("title", "label", "short", "case", "href", "metric", "is_default", "role"),
        *("seconds_low", "seconds_high", "rate_low", "rate_high", "ci_low", "ci_high"),
    }
    return {
        name: known.get(name, (str(name).removeprefix(CASE_PREFIX).replace("_", " "), _plain))
        for name in columns
        if name not in hidden
    }


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
