"""The macro `table`: tables of a study's results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import mode
from typing import Any, Final

from markupsafe import Markup

from analysis.base.errors import require_known
from analysis.base.quantities import (
    gigabytes_per_second,
    percent,
    quantity,
    ratio,
    ratio_interval,
    speed,
    whole,
    with_interval,
)
from analysis.site.charts.widgets import SUFFIX, read_page_table
from analysis.site.facts.addresses import samples_address
from analysis.site.facts.basis import SPREAD, basis_phrase, is_headline, metric_spread, spread
from analysis.site.facts.captures import STALE
from analysis.site.facts.figures import delivered_bytes
from analysis.site.facts.journeys import journey_of
from analysis.site.facts.rows import MeasuredRow, PublishedRow, RatioRow
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages import html
from analysis.site.pages.html import code, element, figure, joined, link, prose, quiet
from analysis.site.pages.page import MACROS, Page, macro
from analysis.study import Variant, parse_case

VERDICTS: Final = {"faster": "✓ faster", "slower": "✗ slower", "same": "= same", "unclear": "?"}
"""Of a step over the one before it, from enough runs."""
OF_STUDIES: Final = (
    "steps",
    "metrics",
    "published",
    "claims",
    "page_table_reads",
    "misses",
)
"""Tables of any study, each a macro by itself."""

Cells = dict[str, object]


@macro()
def table(page: Page, name: str, *parts: Any, **options: Any) -> str:
    """A table of the study's results.

    name: `steps`, `metrics`, `published`, `claims`, `page_table_reads` or `misses`, each
        also a macro by itself; or a function of TABLES in the study's page_tables.py
    parts: as of the macro of that name
    options: as of the macro of that name
    """
    study = page.facts.study.name
    folder = page.staged.drawn / study
    if not (folder / f"{name}{SUFFIX}").exists():
        computed = sorted(path.name.removesuffix(SUFFIX) for path in folder.glob(f"*{SUFFIX}"))
        require_known("table", name, [*OF_STUDIES, *computed])
        return MACROS[name](page, *parts, **options)
    made = read_page_table(folder, name)
    if not made.rows:
        raise page.missing(f"a row of table {name}: {made.empty_text}")
    rows = (dict(zip(made.columns, row, strict=True)) for row in made.rows)
    shown = html.table(rows, numeric=made.numeric)
    return element("div", shown, data_table=f"{study}/{name}{SUFFIX}")


@macro()
def steps(
    page: Page,
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
    facts = page.facts
    changed = changes or {}
    for name in [*names, *changed]:
        require_known("variant", name, facts.study.variant_names)
    variants = [facts.study.variant(name) for name in names] or [
        one for one in facts.study.with_role(*roles) if one.name not in facts.unreached
    ]
    machine = machine or page.machine
    times = {one: facts.figures.time(machine, one) for one in variants}
    measured = [basis_phrase(time) for time in times.values() if time is not None]
    if not measured:
        raise page.missing(f"a figure of any step on {machine or 'any machine'}")
    usual = mode(measured)
    journey = journey_of(facts)
    if journey is not None and journey.machine != machine:
        journey = None
    shares = {step.variant: step.share for step in journey.steps} if journey else {}
    rows = []
    for (variant, time), before in zip(times.items(), [None, *variants], strict=False):
        share = shares.get(variant)
        printed = [
            speed(row.payload_bytes * facts.figures.are_rates, row.seconds)
            for row in facts.figures.printed
            if (row.variant, row.case) == (variant.name, facts.study.shown_case(variant).id)
        ]
        rows.append(
            {
                "step": link(f"#{variant.name}", variant.title),
                "what changes": prose(changed.get(variant.name) or variant.idea.partition(". ")[0]),
                "figure": _figure(facts, variant, time, usual) if time else "",
                "of the limit": "" if share is None else percent(share),
                **(_gain(facts, variant, time, before) if time else {}),
                "write-up": ", ".join(dict.fromkeys(printed)),
            }
        )
    caption = f"{facts.inputs.called(machine)}; case {facts.study.headline}; {usual}"
    if journey is not None and journey.limit is not None:
        limit = with_interval(journey.limit.variant.title, journey.limit.clock)
        caption += f"; limit: {limit}"
    return html.table(rows, caption=caption)


def _figure(facts: StudyFacts, variant: Variant, time: MeasuredRow, runs: str) -> Markup:
    """A rate or time with its clock, and notes if it is stale, of other `runs` or of another
    case."""
    case = facts.study.shown_case(variant)
    payload = delivered_bytes(case, time.metric) * facts.figures.are_rates
    usual = parse_case(facts.study.headline)
    notes = [
        facts.study.metrics[time.metric].clock,
        *([basis_phrase(time)] * (basis_phrase(time) != runs)),
        *(["stale"] * bool(time.stale)),
        *(f"{key}={value}" for key, value in case.values.items() if usual.get(key) != value),
    ]
    return joined("<br>", [figure(speed(payload, time.median), time), *map(quiet, notes)])


def _gain(facts: StudyFacts, variant: Variant, time: MeasuredRow, before: Variant | None) -> Cells:
    """Gain and verdict over the variant's `after`, which is named unless it is the row above."""
    after = facts.study.variant(variant.after) if variant.after else None
    row = facts.figures.comparison(time.machine, variant, after) if after else None
    if row is None or after is None:
        return {"gain": "", "verdict": ""}
    parts = [figure(ratio(row.ratio), row)]
    parts += [quiet(note)] if (note := facts.figures.other_clock(row, time)) else []
    parts += [link(f"#{after.name}", f"over {after.name}")] if after != before else []
    verdict = VERDICTS[row.verdict] if is_headline(row) else "?"
    return {"gain": joined("<br>", parts), "verdict": verdict}


@macro()
def metrics(page: Page, *roles: str) -> Markup:
    """Every metric of some variants on every machine, in the case that is shown of each.

    roles: one or several of `step`, `reference`, `ceiling` and `beyond`; all if omitted
    """
    study = page.facts.study
    shown = study.with_role(*roles) if roles else study.variants
    return html.table(metric_rows(page.facts, shown, page.root))


def metric_rows(facts: StudyFacts, variants: Iterable[Variant], root: str) -> list[Cells]:
    """Cells of every metric of `variants` on every machine, in their shown cases, with links to the
    samples; `root` leads to the root of the site."""
    rows: list[Cells] = []
    for variant in variants:
        case = facts.study.shown_case(variant)
        after = facts.study.variant(variant.after) if variant.after else None
        for machine in facts.machines:
            for name, metric in facts.study.metrics.items():
                row = facts.figures.metric(machine, variant, name)
                if row is None:
                    continue
                over = facts.figures.ratio(machine, variant, after, name) if after else None
                limit = facts.figures.limit_share(machine, variant, case, name)
                payload = delivered_bytes(case, name)
                path = samples_address(machine, facts.study.name, variant.name, case.id, name)
                rows.append(
                    {
                        "variant": variant.title,
                        "machine": link(f"{root}{path}", facts.inputs.called(machine)),
                        "case": "" if case.id == facts.study.headline else case.id,
                        "metric": facts.study.clock_of(variant, name),
                        "median": figure(metric.write(row.median), row),
                        SPREAD: metric_spread(row, metric),
                        "rate": speed(payload, row.median) if payload else "",
                        "over the step before": _ratio(over),
                        "of the ceiling": percent(limit.share) if limit else "",
                        "runs": basis_phrase(row),
                        "samples": whole(row.n),
                        "notes": ", ".join(_flags(row)),
                    }
                )
    return rows


def _ratio(row: RatioRow | None) -> str:
    if row is None:
        return ""
    interval = ratio_interval(row.ci_low, row.ci_high)
    return with_interval(ratio(row.ratio), spread(row, interval, ratio))


def _flags(row: MeasuredRow) -> list[str]:
    """What limits the trust in a figure."""
    flags = {
        "stale": row.stale,
        "not verified": not row.verified,
        f"{row.apart} of {row.runs} runs outside the interval of the others": row.apart,
        f"throttled in {percent(row.throttled)} of samples": row.throttled > 0,
        f"disturbed in {row.disturbed} of {row.rounds} rounds": row.disturbed,
    }
    return [flag for flag, is_raised in flags.items() if is_raised]


@macro()
def published(page: Page) -> Markup:
    """The write-up's figures in SI units, beside the measured ones."""
    facts = page.facts
    statements: dict[tuple[str, str, str], list[PublishedRow]] = {}
    for row in facts.published:
        statements.setdefault((row.variant, row.case, row.source), []).append(row)
    rows = []
    for (variant, case, source), printed in statements.items():
        best = next((row for row in printed if row.is_time), printed[0])
        notes = dict.fromkeys(filter(None, (row.note for row in printed)))
        measured = {
            facts.inputs.called(machine): speed(best.payload_bytes, found.median)
            for machine in facts.machines
            if (found := facts.figures.find(machine, variant, case, best.metric))
        }
        rows.append(
            {
                "variant": code(variant),
                "case": case,
                "as printed": "; ".join(f"{row.printed} {row.unit_printed}" for row in printed),
                "time": quantity(best.seconds, "s"),
                "rate": gigabytes_per_second(best.rate),
                **measured,
                "source": "; ".join([source, *notes]),
            }
        )
    return html.table(rows)


def missing(facts: StudyFacts) -> Markup:
    """Missing results with their reasons: skipped or failed cases, stale or missing captures, and
    tables of the code; nothing if all exist."""
    columns = ["machine", "status", "reason", "variant"]
    groups = facts.skipped.groupby(columns, sort=True)["case"].agg(list).reset_index()
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for machine, status, reason, variant, cases in groups.itertuples(index=False):
        is_all = len(cases) == len(facts.study.variant(variant).cases)
        where = "all" if is_all else "; ".join(cases)
        found.setdefault((machine, "results", f"{status}: {reason}", where), []).append(variant)
    for machine in facts.machines:
        for variant in (one for one in facts.study.variants if one.on_gpu):
            for kind in ("counters", "timeline"):
                capture = facts.captures.find(machine, variant, kind)
                if not capture.is_there or capture.state == STALE:
                    reason = "the code has changed since" if capture.is_there else capture.reason
                    found.setdefault((machine, kind, reason, ""), []).append(variant.name)
    rows: list[Cells] = [
        {
            "machine": facts.inputs.called(machine),
            "missing": kind,
            "reason": reason,
            "cases": cases,
            "variants": joined(", ", map(code, dict.fromkeys(variants))),
        }
        for (machine, kind, reason, cases), variants in found.items()
    ]
    rows += [
        {"missing": f"table {name} of the code", "reason": why}
        for name, why in facts.absent.items()
    ]
    return html.table(rows)
