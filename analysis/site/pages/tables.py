"""The macro `table`: tables of a study's results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any, Final

from markupsafe import Markup

from analysis.base.errors import FieldError, require_known
from analysis.base.quantities import (
    digits,
    gigabytes_per_second,
    percent,
    quantity,
    ratio,
    ratio_interval,
    runs_phrase,
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
from analysis.site.pages.html import NO_HTML, code, figure, joined, link, moment, prose, quiet
from analysis.site.pages.page import MACROS, Page, macro
from analysis.study import CaseValue, Variant, parse_case

VERDICTS: Final = {"faster": "✓ faster", "slower": "✗ slower", "same": "= same", "unclear": "?"}
"""Of a step over the one before it, from enough runs."""
OF_STUDIES: Final = (
    *("steps", "metrics", "rates", "hosts", "published", "claims", "counters", "page_table_reads"),
    *("predictions", "misses"),
)
"""Tables of any study, each a macro by itself."""

Cells = dict[str, object]


@macro("table")
def table(page: Page, facts: StudyFacts, name: str, *parts: Any, **options: Any) -> str:
    """A table of the study's results.

    name: `steps`, `metrics`, `rates`, `hosts`, `published`, `claims`, `counters`,
        `page_table_reads`, `predictions` or `misses`, each also a macro by itself; or a function of
        TABLES in the study's page_tables.py
    parts: as of the macro of that name
    options: as of the macro of that name
    """
    folder = page.docs / "charts" / facts.study.name
    if not (folder / f"{name}{SUFFIX}").exists():
        computed = sorted(path.name.removesuffix(SUFFIX) for path in folder.glob(f"*{SUFFIX}"))
        require_known("table", name, [*OF_STUDIES, *computed])
        return MACROS[name](page, *parts, study=facts.study.name, **options)
    made = read_page_table(folder, name)
    if not made.rows:
        return page.missing(f"a row of table {name}: {made.empty_text}")
    rows = (dict(zip(made.columns, row, strict=True)) for row in made.rows)
    file = f"{facts.study.name}/{name}{SUFFIX}"
    return html.from_file(file, html.table(rows, numeric=made.numeric))


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
    on_machine = journey if journey is not None and journey.machine == machine else None
    shares = {step.variant: step.share for step in on_machine.steps} if on_machine else {}
    times = [facts.figures.time(machine, one) for one in variants]
    measured = [time for time in times if time is not None]
    if not measured:
        return page.missing(f"a figure of any step on {machine or 'any machine'}")
    rows = []
    for variant, time, before in zip(variants, times, [None, *variants], strict=False):
        change = (changes or {}).get(variant.name) or variant.idea.partition(". ")[0]
        share = shares.get(variant)
        rows.append(
            {
                "step": link(f"#{variant.name}", variant.title),
                "what changes": prose(change),
                "figure": _figure(facts, variant, time) if time else "",
                "of the limit": "" if share is None else percent(share),
                **(_gain(facts, variant, time, before) if time else {}),
                "write-up": _printed(facts, variant),
            }
        )
    parts = [facts.inputs.called(machine), f"case {facts.study.headline}"]
    few = min(measured, key=lambda row: (row.runs, row.hosts))
    parts.append(runs_phrase(few.runs, few.hosts))
    if on_machine is not None and (limit := on_machine.limit) is not None:
        named = limit.variant.title if limit.variant else "the prediction of the link model"
        parts.append(f"limit: {with_interval(named, limit.clock)}")
    return html.table(rows, caption="; ".join(parts))


def _figure(facts: StudyFacts, variant: Variant, time: MeasuredRow) -> Markup:
    """A rate or time with its clock, and notes if it is stale, of few runs or of another case."""
    case = facts.study.shown_case(variant)
    payload = delivered_bytes(case, time.metric) * facts.figures.are_rates
    usual = parse_case(facts.study.headline)
    notes = [
        facts.study.metrics[time.metric].clock,
        *([] if is_headline(time) else [basis_phrase(time)]),
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


def _printed(facts: StudyFacts, variant: Variant) -> str:
    """What write-ups printed of the variant's shown case."""
    case = facts.study.shown_case(variant).id
    rows = [row for row in facts.figures.printed if (row.variant, row.case) == (variant.name, case)]
    payload = facts.figures.are_rates
    return ", ".join(dict.fromkeys(speed(row.payload_bytes * payload, row.seconds) for row in rows))


@macro("metrics")
def metrics(facts: StudyFacts, *roles: str) -> Markup:
    """Every metric of some variants on every machine, in the case that is shown of each.

    roles: one or several of `step`, `reference`, `ceiling` and `beyond`; all if omitted
    """
    shown = facts.study.with_role(*roles) if roles else facts.study.variants
    return html.table(metric_rows(facts, shown))


def metric_rows(
    facts: StudyFacts, variants: Iterable[Variant], root: str = "../../"
) -> list[Cells]:
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


@macro("rates")
def rates(facts: StudyFacts, variant: str, down: str, across: str, *values: CaseValue) -> Markup:
    """A variant's rates over two keys of its case, a table for each machine.

    variant: name of the variant
    down: case key of the rows
    across: case key of the columns
    values: values of the rows; all if omitted
    """
    of = facts.study.variant(variant)
    shown = facts.study.shown_case(of)
    for key in (down, across):
        require_known("case key", key, sorted(shown.values))
    others = {key: value for key, value in shown.values.items() if key not in (down, across)}
    like = [case for case in of.cases if others.items() <= case.values.items()]
    if len({case.payload_bytes for case in like}) > 1:
        raise FieldError(f"{down}, {across}", "keys that do not change the payload", variant)
    tables = []
    for machine in facts.machines:
        rows: dict[CaseValue, Cells] = {value: {down: code(value)} for value in values}
        for case in sorted(like, key=lambda case: str(case[across]).zfill(12)):
            found = (
                facts.figures.find(machine, variant, case.id, metric)
                for metric in facts.study.metrics_for(of)
            )
            row = next(filter(None, found), None)
            if row is None or (values and case[down] not in values):
                continue
            rate = figure(digits(case.payload_bytes / row.median / 1e9), row)
            cells = rows.setdefault(case[down], {down: code(case[down])})
            cells[f"{across} {case[across]}"] = rate
        caption = f"{facts.inputs.called(machine)}, GB/s of payload"
        tables.append(html.table(rows.values(), caption=caption))
    return NO_HTML.join(tables)


@macro("hosts")
def hosts(facts: StudyFacts, variant: str, *others: str) -> Markup:
    """The speed of one core of the host in each run, beside the rates of some variants.

    variant: name of the variant; rates are of its shown case
    others: names of further variants
    """
    names = [variant, *others]
    variants = [facts.study.variant(name) for name in names]
    payload = facts.study.shown_case(variants[0]).payload_bytes
    tables = []
    for machine in facts.machines:
        rows: dict[str, Cells] = {}
        for name, time in zip(names, facts.figures.times(machine, *variants), strict=False):
            for run, seconds in facts.figures.by_run(time):
                if not run.conditions:
                    continue
                loop, copied = (
                    median(getattr(look, key) for look in run.conditions)
                    for key in ("spin_s", "copy_bytes_per_s")
                )
                cells = rows.setdefault(run.run, {"run": moment(run.begun)})
                cells["fixed loop on one core"] = quantity(loop, "s")
                cells["copy rate of one core"] = gigabytes_per_second(copied / 1e9)
                cells[name] = speed(payload, seconds)
        tables.append(html.table(rows.values(), caption=f"On {facts.inputs.called(machine)}"))
    return NO_HTML.join(tables)


@macro("published")
def published(facts: StudyFacts) -> Markup:
    """The write-up's figures in SI units, beside the measured ones."""
    statements: dict[tuple[str, str, str], list[PublishedRow]] = {}
    for row in facts.published:
        statements.setdefault((row.variant, row.case, row.source), []).append(row)
    rows = []
    for (variant, case, source), printed in statements.items():
        best = next((row for row in printed if row.is_time), printed[0])
        notes = dict.fromkeys(filter(None, (row.note for row in printed)))
        measured = {}
        for machine in facts.machines:
            if found := facts.figures.find(machine, variant, case, best.metric):
                name = facts.inputs.called(machine)
                measured[name] = speed(best.payload_bytes, found.median)
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
    tables of the code; nothing if all are there."""
    columns = ["machine", "status", "reason", "variant"]
    groups = facts.skipped.groupby(columns, sort=True)["case"].agg(list).reset_index()
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for machine, status, reason, variant, cases in groups.itertuples(index=False):
        is_all = len(cases) == len(facts.study.variant(variant).cases)
        where = "all" if is_all else "; ".join(cases)
        found.setdefault((machine, f"{status}: {reason}", where, ""), []).append(variant)
    for machine in facts.machines:
        for variant in (one for one in facts.study.variants if one.on_gpu):
            for kind in ("counters", "timeline"):
                capture = facts.captures.find(machine, variant, kind)
                if not capture.is_there or capture.state == STALE:
                    reason = "the code has changed since" if capture.is_there else capture.reason
                    found.setdefault((machine, reason, "", kind), []).append(variant.name)
    rows: list[Cells] = [
        {
            "machine": facts.inputs.called(machine),
            "missing": kind or "results",
            "reason": reason,
            "cases": cases,
            "variants": joined(", ", map(code, dict.fromkeys(variants))),
        }
        for (machine, reason, cases, kind), variants in found.items()
    ]
    rows += [
        {"missing": f"table {name} of the code", "reason": why}
        for name, why in facts.absent.items()
    ]
    return html.table(rows)
