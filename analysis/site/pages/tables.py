"""Tables of a study's results: its steps, its metrics, what was printed, what is missing, and those
that the study computes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from statistics import mode
from typing import Any, Final

from markupsafe import Markup

from analysis.base.errors import require_known
from analysis.base.quantities import (
    gigabytes_per_second,
    percent,
    quantity,
    quantity_interval,
    ratio,
    ratio_interval,
    runs_phrase,
    speed,
    whole,
    with_interval,
)
from analysis.base.statistics import SAME_WITHIN
from analysis.results.tables.rows import RatioRow
from analysis.site.charts.widgets import SUFFIX, read_page_table, unmeasured_answers
from analysis.site.facts.addresses import samples_address
from analysis.site.facts.basis import SPREAD, basis_phrase, figures_by_run, is_headline, spread
from analysis.site.facts.captures import STALE
from analysis.site.facts.inputs import MeasuredRow
from analysis.site.facts.journeys import journey_of
from analysis.site.facts.points import NOT_MEASURED
from analysis.site.facts.study_facts import WHOLE, StudyFacts, delivered_bytes
from analysis.site.pages import html
from analysis.site.pages.html import code, element, figure, joined, link, prose, quiet
from analysis.site.pages.inline import figure_words
from analysis.site.pages.navigation import JOURNEYS
from analysis.site.pages.page import Page, macro
from analysis.study import Variant, parse_case

SPEED_UP: Final = "speed-up"
PAIRED: Final = (
    "a speed-up compares rounds of the same runs; where the two figures have another ratio, the"
    " run nearest to it is shown below"
)
AGREES: Final = 0.05
"""A speed-up and the quotient of the figures beside it differ by at most this share."""

Cells = dict[str, object]


@macro
def table(page: Page, name: str, **options: Any) -> Markup:
    """A table of the study's results.

    name: `steps`, the running table of steps; or a function of TABLES in the study's page_tables.py
    options: of `steps`: `names`, the variants, or else `roles`, one or several of `step`,
        `reference`, `ceiling` and `beyond`
    """
    if name == "steps":
        return steps(page, **options)
    study = page.facts.study.name
    folder, file = page.staged.drawn / study, f"{study}/{name}{SUFFIX}"
    made_names = sorted(path.name.removesuffix(SUFFIX) for path in folder.glob(f"*{SUFFIX}"))
    require_known("table", name, ["steps", *made_names])
    made = read_page_table(folder, name)
    if not made.rows and made.may_be_empty:
        return element("p", made.empty_text, data_table=file)
    if not made.rows:
        raise page.missing(f"a row of table {name}: {made.empty_text}")
    rows = (dict(zip(made.columns, row, strict=True)) for row in made.rows)
    return element("div", html.table(rows, numeric=made.numeric), data_table=file)


def steps(
    page: Page,
    names: Sequence[str] = (),
    roles: Sequence[str] = ("step", "beyond"),
) -> Markup:
    """The running table: the first paragraph of each variant's idea, its figure, share of the
    limit, and speed-up. Without `names`, it has all of some `roles` that a machine could run."""
    facts, machine = page.facts, page.machine
    for name in names:
        require_known("variant", name, facts.study.variant_names)
    variants = [facts.study.variant(name) for name in names] or [
        one for one in facts.study.with_role(*roles) if one.name not in facts.unreached
    ]
    times = {one: facts.time(machine, one) for one in variants}
    measured = [basis_phrase(time) for time in times.values() if time is not None]
    if not measured:
        raise page.missing(f"a figure of any step on {machine or 'any machine'}")
    usual = mode(measured)
    journey = journey_of(facts)
    if journey is not None and journey.machine != machine:
        journey = None
    rows: list[Cells] = []
    for (variant, time), before in zip(times.items(), [None, *variants], strict=False):
        share = journey.shares.get(variant) if journey else None
        printed = [
            speed(row.payload_bytes * facts.are_rates, row.seconds)
            for row in facts.printed
            if (row.variant, row.case) == (variant.name, facts.study.shown_case(variant).id)
        ]
        rows.append(
            {
                "step": link(f"#{variant.name}", variant.title),
                "what changes": prose(variant.idea.partition("\n")[0]),
                "figure": _figure(facts, variant, time, usual) if time else NOT_MEASURED,
                "of the limit": "" if share is None else percent(share),
                SPEED_UP: _step_speed_up(facts, variant, time, before) if time else "",
                "write-up": ", ".join(dict.fromkeys(printed)),
            }
        )
    parts = [facts.inputs.called(machine), f"case {facts.study.headline}", usual]
    if journey is not None and journey.limit is not None:
        parts.append(f"limit: {with_interval(journey.limit.variant.title, journey.limit.clock)}")
    parts += [PAIRED] * any(row[SPEED_UP] for row in rows)
    numeric = ["figure", "of the limit", SPEED_UP, "write-up"]
    return html.table(rows, caption="; ".join(parts), numeric=numeric)


def _figure(facts: StudyFacts, variant: Variant, time: MeasuredRow, runs: str) -> Markup:
    """A rate or time with its clock, and notes if it is stale, of other `runs` or of another
    case."""
    case = facts.study.shown_case(variant)
    usual = parse_case(facts.study.headline)
    notes = [
        facts.study.metrics[time.metric].clock,
        *([basis_phrase(time)] * (basis_phrase(time) != runs)),
        *(["stale"] * bool(time.stale)),
        *(f"{key}={value}" for key, value in case.values.items() if usual.get(key) != value),
    ]
    return joined("<br>", [figure(figure_words(facts, case, time)[0], time), *map(quiet, notes)])


def _step_speed_up(
    facts: StudyFacts, variant: Variant, time: MeasuredRow, before: Variant | None
) -> Markup:
    """The speed-up over the variant's `after`, which is named unless it is the row above."""
    after = facts.study.variant(variant.after) if variant.after else None
    row = facts.comparison(time.machine, variant, after) if after else None
    if row is None or after is None:
        return html.NO_HTML
    parts = [_gain(facts, row, facts.time(time.machine, after), time)]
    if row.metric != time.metric:
        parts.append(quiet(f"by {facts.study.metrics[row.metric].clock}"))
    parts += [link(f"#{after.name}", f"over {after.name}")] if after != before else []
    return joined("<br>", parts)


def _gain(
    facts: StudyFacts, row: RatioRow, before: MeasuredRow | None, after: MeasuredRow
) -> Markup:
    """A speed-up. Below it are both figures of the run that is nearest to it, if those that are
    shown, `before` and `after`, are of other cases or clocks or have another quotient."""
    shown = figure(speed_up(row), row)
    names = row.against, row.variant
    pair = [facts.find(row.machine, name, row.case, row.metric) for name in names]
    by_run = [figures_by_run(one) if one else [] for one in pair]
    known = facts.study.payloads if row.metric in WHOLE else {}
    payloads = [known.get((name, row.case), 0) for name in names]
    scale = payloads[1] / payloads[0] if all(payloads) else 1.0

    def error(times: tuple[float, ...]) -> float:
        """The logarithm of the factor by which the quotient of two times misses the speed-up."""
        return abs(math.log(times[0] / times[1] * scale / row.ratio))

    if pair == [before, after] and before:
        medians = before.median, after.median
        is_same_side = (medians[0] * scale > medians[1]) == (row.ratio > 1)
        if error(medians) < (AGREES if is_same_side else SAME_WITHIN):
            return shown
    runs = [*zip(*by_run, strict=False)]
    agreeing = [times for times in runs if (times[0] * scale > times[1]) == (row.ratio > 1)]
    # A run speaks for the pair only if both were measured in the same runs.
    if {*map(len, by_run)} != {row.runs} or not agreeing:
        return shown
    nearest = min(agreeing, key=error)
    figures = zip(payloads, nearest, strict=True)
    words = [speed(payload * facts.are_rates, seconds) for payload, seconds in figures]
    return joined("<br>", [shown, quiet(f"in one run: {' → '.join(words)}")])


def speed_up(row: RatioRow) -> str:
    """A ratio of speeds as `1.96× faster` or `1.59× slower`; without a verdict, it is unclear."""
    verdict = row.verdict if is_headline(row) else "unclear"
    if verdict == "same":
        return verdict
    words = f"{ratio(row.ratio)} faster" if row.ratio >= 1 else f"{ratio(1 / row.ratio)} slower"
    return f"{words}, unclear" if verdict == "unclear" else words


@macro
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
    return [
        _metric(facts, variant, row, root)
        for variant in variants
        for machine in facts.machines
        for name in facts.study.metrics
        if (row := facts.metric(machine, variant, name)) is not None
    ]


def _metric(facts: StudyFacts, variant: Variant, row: MeasuredRow, root: str) -> Cells:
    case, metric = facts.study.shown_case(variant), facts.study.metrics[row.metric]
    after = facts.study.variant(variant.after) if variant.after else None
    over = facts.ratio(row.machine, variant, after, row.metric) if after else None
    limit = facts.limit_share(row.machine, variant, case, row.metric)
    payload = delivered_bytes(case, row.metric)
    path = samples_address(row.machine, row.study, row.variant, row.case, row.metric)
    interval = quantity_interval(row.median, row.ci_low, row.ci_high, metric.written_unit)
    doubts = {
        "stale": row.stale,
        "not verified": not row.verified,
        f"{row.apart} of {row.runs} runs outside the interval of the others": row.apart,
        f"throttled in {percent(row.throttled)} of samples": row.throttled > 0,
        f"disturbed in {row.disturbed} of {row.rounds} rounds": row.disturbed,
    }
    return {
        "variant": variant.title,
        "machine": link(f"{root}{path}", facts.inputs.called(row.machine)),
        "case": "" if case.id == facts.study.headline else case.id,
        "metric": facts.study.clock_of(variant, row.metric),
        "median": figure(metric.write(row.median), row),
        SPREAD: spread(row, interval, metric.write),
        "rate": speed(payload, row.median) if payload else "",
        f"{SPEED_UP} over the step before": _with_spread(over) if over else "",
        "of the ceiling": percent(limit.share) if limit else "",
        "runs": basis_phrase(row),
        "samples": whole(row.n),
        "notes": ", ".join(doubt for doubt, is_raised in doubts.items() if is_raised),
    }


def _with_spread(row: RatioRow) -> str:
    """The speed-up with its interval, or that of each run; both ways round as the speed-up is."""
    ends = (row.ci_low, row.ci_high) if row.ratio >= 1 else (1 / row.ci_high, 1 / row.ci_low)
    runs = spread(row, ratio_interval(*ends), lambda of: ratio(of if row.ratio >= 1 else 1 / of))
    return with_interval(speed_up(row), runs)


def published(page: Page) -> Markup:
    """The write-up's figures in SI units, beside the measured ones."""
    facts, rows = page.facts, []
    places = [(row.variant, row.case, row.source) for row in facts.published]
    for place in dict.fromkeys(places):
        printed = [row for row, at in zip(facts.published, places, strict=True) if at == place]
        best = next((row for row in printed if row.is_time), printed[0])
        measured = {
            facts.inputs.called(machine): speed(best.payload_bytes, found.median)
            for machine in facts.machines
            if (found := facts.find(machine, best.variant, best.case, best.metric))
        }
        rows.append(
            {
                "variant": code(best.variant),
                "case": best.case,
                "as printed": "; ".join(f"{row.printed} {row.unit_printed}" for row in printed),
                "time": quantity(best.seconds, "s"),
                "rate": gigabytes_per_second(best.rate),
                **measured,
                "source": "; ".join(
                    [best.source, *dict.fromkeys(row.note for row in printed if row.note)]
                ),
            }
        )
    return html.table(rows)


def missing(facts: StudyFacts) -> Markup:
    """Missing results with their reasons: skipped or failed cases, cases that answers lack, stale
    or missing captures, and tables of the code; nothing if all exist."""
    found: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    columns = ["machine", "status", "reason", "variant"]
    groups = facts.skipped.groupby(columns)["case"].agg(list).reset_index()
    for machine, status, reason, variant, cases in groups.itertuples(index=False):
        where = ["all"] if len(cases) == len(facts.study.variant(variant).cases) else cases
        found.setdefault((machine, "results", f"{status}: {reason}"), {})[variant] = where
    for machine, variant, case in unmeasured_answers(facts):
        of_machine = found.setdefault((machine, "answers", NOT_MEASURED), {})
        of_machine.setdefault(variant, []).append(case)
    on_gpu = [one for one in facts.study.variants if one.on_gpu]
    for machine, variant, kind in product(facts.machines, on_gpu, ("counters", "timeline")):
        capture = facts.capture(machine, variant, kind)
        if not capture.is_there or capture.state == STALE:
            reason = "the code has changed since" if capture.is_there else capture.reason
            found.setdefault((machine, kind, reason), {})[variant.name] = ["all"]
    rows: list[Cells] = [
        {
            "machine": facts.inputs.called(machine),
            "missing": kind,
            "reason": reason,
            "variants and cases": _variants_and_cases(cases),
        }
        for (machine, kind, reason), cases in found.items()
    ]
    return html.table(rows, numeric=())


def _variants_and_cases(cases: Mapping[str, Sequence[str]]) -> Markup:
    """Folded: a line for each variant with its cases."""
    wrapped = {name: "; ".join(of).replace(",", ", ") for name, of in cases.items()}
    lines = (joined(": ", [code(name), of]) for name, of in wrapped.items())
    return html.folded(f"{len(cases)} variant{'s' * (len(cases) > 1)}", joined("<br>", lines))


@macro
def journeys(page: Page, *names: str) -> Markup:
    """A line for each journey: its first and best step, the speed-up, and the share of the limit.

    names: some of the studies; all journeys if omitted
    """
    rows = []
    for name in names or page.staged.groups.get(JOURNEYS, ()):
        facts = page.staged.studies[name]
        if (journey := journey_of(facts)) is None:
            continue
        pair = first_step, best_step = next(iter(journey.times)), journey.best
        times = [journey.times[step] for step in pair]
        first, best = (
            figure(figure_words(facts, facts.study.shown_case(step), time)[0], time)
            for step, time in zip(pair, times, strict=True)
        )
        gain = facts.ratio(journey.machine, best_step, first_step, journey.metric)
        few, share = min(times, key=lambda time: time.runs), journey.shares.get(journey.best)
        address = page.address(f"studies/{name}/") if name in page.staged.pages else ""
        case = facts.study.headline.replace(",", ", ")
        rows.append(
            {
                "study": joined("<br>", [link(address, facts.study.title), quiet(case)]),
                "first step": first,
                "best step": best,
                SPEED_UP: _gain(facts, gain, *times) if gain and is_headline(gain) else "",
                # A step that is faster than the limit says why on its page.
                "of the limit": f"{percent(share)} of {journey.limit.variant.title}"
                if journey.limit and share is not None and share <= 1
                else "",
                "by": facts.study.metrics[journey.metric].clock,
                "on": f"{page.inputs.called(journey.machine)}, {runs_phrase(few.runs, few.hosts)}",
            }
        )
    return html.table(rows, caption=PAIRED.capitalize() if rows else "")
