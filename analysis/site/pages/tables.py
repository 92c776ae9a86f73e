"""The macro `table`: tables of a study's results."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

from analysis.base.errors import require_known
from analysis.base.quantities import percent, ratio, runs_phrase, speed, with_interval
from analysis.site.charts.columns import delivered_bytes
from analysis.site.charts.page_tables import SUFFIX, read_page_table
from analysis.site.facts.basis import is_headline
from analysis.site.facts.journeys import Journey, journey_of
from analysis.site.facts.rows import MeasuredRow
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.html import figure, from_file, joined, link, prose, records, with_class
from analysis.site.pages.html import table as html_table
from analysis.site.pages.page import MACROS, Page, macro
from analysis.study import Variant, parse_case

_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\[])")
VERDICTS: Final = {"faster": "✓ faster", "slower": "✗ slower", "same": "= same", "unclear": "?"}
"""Of a step over the one before it, from enough runs."""


@macro("table")
def table(page: Page, facts: StudyFacts, name: str, *parts: Any, **options: Any) -> str:
    """A table of the study's results.

    name: `steps` (what each step changes and gains), `rates`, `hosts`, `metrics`, `counters`,
        `copies`, `page_table_reads`, `claims`, or a function of TABLES in the study's
        page_tables.py
    parts: as of the macro or function of that table
    options: `machine`, and for steps `names` of variants, `roles`, and `changes`, an author's words
        for what a variant changes, by its name
    """
    folder = page.docs / "charts" / facts.study.name
    if (folder / f"{name}{SUFFIX}").exists():
        made = read_page_table(folder, name)
        if not made.rows:
            return page.missing(f"a row of table {name}: {made.empty_text}")
        file = f"{facts.study.name}/{name}{SUFFIX}"
        return from_file(file, html_table(made.columns, made.rows, numeric=made.numeric))
    known = [path.name.removesuffix(SUFFIX) for path in folder.glob(f"*{SUFFIX}")]
    require_known("table", name, [*OF_STUDIES, *sorted(known)])
    return OF_STUDIES[name](page, *parts, study=facts.study.name, **options)


@macro("steps")
def steps(
    page: Page,
    facts: StudyFacts,
    names: Sequence[str] = (),
    roles: Sequence[str] = ("step", "beyond"),
    changes: Mapping[str, str] | None = None,
    machine: str = "",
) -> Markup:
    """The running table: what each variant changes, its figure, share of the limit, and gain.

    names: the variants; by default all of some `roles` that a machine could run
    roles: one or several of `step`, `reference`, `ceiling` and `beyond`
    changes: what a variant changes, by its name; by default the first sentence of its idea
    machine: as of `figure`
    """
    for name in [*names, *(changes or {})]:
        require_known("variant", name, facts.study.variant_names)
    variants = [facts.study.variant(name) for name in names] or [
        one for one in facts.study.with_role(*roles) if one.name not in facts.unreached
    ]
    machine = machine or page.machine(facts)
    journey = journey_of(facts)
    if journey is not None and journey.machine != machine:
        journey = None
    times = {one.name: facts.figures.time(machine, one) for one in variants}
    clocks = {time.metric for time in times.values() if time is not None}
    previous = [None, *variants]
    rows = [
        {
            "step": link(f"#{one.name}", one.title),
            "what changes": prose((changes or {}).get(one.name) or _first_sentence(one.idea)),
            **_figures(facts, one, times[one.name], before, len(clocks) > 1, journey),
        }
        for one, before in zip(variants, previous, strict=False)
    ]
    if not any(times.values()):
        return page.missing(f"a figure of any step on {machine or 'any machine'}")
    return records(rows, caption=_basis(facts, machine, times, clocks, journey))


def _figures(
    facts: StudyFacts,
    variant: Variant,
    time: MeasuredRow | None,
    before: Variant | None,
    has_clocks: bool,
    journey: Journey | None,
) -> dict[str, object]:
    """Cells of a step: empty without a time."""
    case = facts.study.shown_case(variant)
    rate = "rate" if facts.figures.are_rates else "time"
    cells: dict[str, object] = dict.fromkeys((rate, "of the limit", "gain", "", "write-up"), "")
    printed = [
        speed(row.payload_bytes * facts.figures.are_rates, row.seconds)
        for row in facts.figures.printed
        if (row.variant, row.case) == (variant.name, case.id)
    ]
    cells["write-up"] = ", ".join(dict.fromkeys(printed))
    if time is None:
        return cells
    payload = delivered_bytes(case, time.metric) * facts.figures.are_rates
    notes = [] if is_headline(time) else [runs_phrase(time.runs, time.hosts)]
    notes += ["stale"] * bool(time.stale)
    notes += [facts.study.metrics[time.metric].clock] * has_clocks
    usual = parse_case(facts.study.headline)
    notes += [f"{key}={value}" for key, value in case.values.items() if usual.get(key) != value]
    shown = figure(speed(payload, time.median), time)
    cells[rate] = joined("<br>", [shown, *map(with_class("hp-quiet"), notes)])
    shares = {step.variant: step.share for step in journey.steps} if journey else {}
    share = shares.get(variant)
    cells["of the limit"] = "" if share is None else percent(share)
    after = facts.study.variant(variant.after) if variant.after else None
    row = facts.figures.comparison(time.machine, variant, after) if after else None
    if row is not None and after is not None:
        other = [link(f"#{after.name}", f"over {after.title}")] if after != before else []
        clock = [facts.figures.other_clock(row, time)] if row.metric != time.metric else []
        cells["gain"] = joined("<br>", [figure(ratio(row.ratio), row), *other, *clock])
        cells[""] = VERDICTS[row.verdict] if is_headline(row) else "?"
    return cells


def _basis(
    facts: StudyFacts,
    machine: str,
    times: Mapping[str, MeasuredRow | None],
    clocks: set[str],
    journey: Journey | None,
) -> str:
    """Machine, least runs and hosts, clock, case and limit of the figures."""
    rows = [time for time in times.values() if time is not None]
    parts = [f"{facts.inputs.called(machine)}, case {facts.study.headline}"]
    parts.append(runs_phrase(min(row.runs for row in rows), min(row.hosts for row in rows)))
    parts += [facts.study.metrics[clock].clock for clock in clocks if len(clocks) == 1]
    if journey is not None and journey.limit is not None:
        limit = journey.limit
        named = limit.variant.title if limit.variant else "the prediction of the link model"
        parts.append(f"limit: {with_interval(named, limit.clock)}")
    return "; ".join(parts)


def _first_sentence(text: str) -> str:
    return _SENTENCE.split(" ".join(text.split()), maxsplit=1)[0]


def _macro_of(name: str) -> Callable[..., str]:
    return lambda page, *parts, **options: MACROS[name](page, *parts, **options)


OF_STUDIES: Final = {
    name: _macro_of(name)
    for name in (
        *("steps", "rates", "hosts", "metrics", "counters", "claims", "copies"),
        "page_table_reads",
    )
}
"""Tables of any study, each a macro by itself."""
