"""Sections of a study's page: each variant, its code and its figures, and what explains those."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from markupsafe import Markup, escape

from analysis import ROOT
from analysis.base.errors import require_known
from analysis.base.quantities import (
    gigabytes_per_second,
    listing,
    percent,
    quantity,
    ratio,
    ratio_interval,
    runs_phrase,
    with_interval,
)
from analysis.site.charts.columns import delivered_bytes
from analysis.site.facts.addresses import samples_address
from analysis.site.facts.basis import SPREAD, basis_phrase, metric_spread, spread
from analysis.site.facts.figures import NOT_MEASURED
from analysis.site.facts.rows import MeasuredRow, RatioRow
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.compiled import compiled
from analysis.site.pages.counters import counter_tables
from analysis.site.pages.differences import (
    LANGUAGES,
    code_difference,
    fenced,
    highlighted,
    setting_difference,
)
from analysis.site.pages.fragments import Place, root_from
from analysis.site.pages.html import NO_HTML, link, plain, table
from analysis.site.pages.page import macro
from analysis.site.pages.sentences import reach_sentence, result_sentence
from analysis.site.pages.step_table import step_table
from analysis.site.pages.templates import macros
from analysis.study import ROLES, Case, Variant

SMOKE: Final = ROOT / "build" / "smoke"
"""Folder of all output of the smoke grid."""
SHORT_LINES: Final = 30
"""Maximum number of lines of a difference in view."""
APART_MARK: Final = " ‡"
"""Beside a time with runs outside the interval of the others."""


@macro("variants")
def sections(facts: StudyFacts, place: Place, *roles: str) -> str:
    """A table of all variants, and a folded section for each: result, idea, code difference, and
    evidence; a paragraph for each variant that no machine could run.

    roles: one or several of `step`, `reference`, `ceiling` and `beyond`
    """
    for role in roles:
        require_known("role", role, ROLES)
    are_numbered = roles == ("step",)
    reached: list[str] = []
    shown: list[Variant] = []
    unreached: list[str] = []
    for variant in facts.study.with_role(*roles):
        if variant.name in facts.unreached:
            unreached.append(_paragraph(facts, variant, place))
        else:
            number = f"{len(reached)}. " if are_numbered else ""
            reached.append(_section(facts, variant, number + variant.title, place))
            shown.append(variant)
    if unreached:
        count = f"{len(unreached)} variant{'s' * (len(unreached) > 1)}"
        heading = f"### {count} not measured on any machine {{: #unmeasured-{roles[0]} .fold }}"
        reached += [heading, *unreached]
    return "\n\n".join([step_table(facts, shown), *reached])


def _section(facts: StudyFacts, variant: Variant, title: str, place: Place) -> str:
    label = escape(title)  # of the table of contents; the name is for search, which finds headings
    difference = code_difference(facts.study, variant)
    is_short = difference.count("\n") < SHORT_LINES
    parts = [
        f'### {title} `{variant.name}` {{: #{variant.name} .fold data-toc-label="{label}"}}',
        _after(variant),
        "\n".join(f"- {sentence}" for sentence in _sentences(facts, variant)),
        variant.idea.strip(),
        *(f"Faster than `{name}`: {reason}" for name, reason in variant.beats.items()),
        _settings(facts, variant, difference),
        fenced(difference, "diff") if difference and is_short else "",
        _evidence(facts, variant, place, "" if is_short else difference),
    ]
    return "\n\n".join(part for part in parts if part)


def _paragraph(facts: StudyFacts, variant: Variant, place: Place) -> str:
    difference = code_difference(facts.study, variant)
    sentences = [
        f"**{variant.title}**{{: #{variant.name} }} `{variant.name}`"
        f" was skipped: {plain(facts.unreached[variant.name])}.",
        _after(variant),
        variant.idea.strip(),
        _settings(facts, variant, difference),
    ]
    text = " ".join(sentence for sentence in sentences if sentence)
    return f"{text}\n\n{_evidence(facts, variant, place, difference)}"


def _after(variant: Variant) -> str:
    return f"After [`{variant.after}`](#{variant.after})." if variant.after else ""


def _settings(facts: StudyFacts, variant: Variant, difference: str) -> str:
    """What differs from the variant before beside the code, or that nothing does; Markdown."""
    settings = setting_difference(facts.study, variant)
    if settings:
        return f"study.yaml sets {listing(settings)}."
    is_same = variant.after and not difference
    return f"The same source as `{variant.after}`, unchanged." if is_same else ""


def _evidence(facts: StudyFacts, variant: Variant, place: Place, difference: str) -> Markup:
    """Evidence in folds, with `difference` if it is not in view; HTML."""
    folder = f"evidence/{facts.study.name}/{variant.name}"
    source = highlighted(variant.path.read_text(), LANGUAGES[variant.path.suffix])
    shown = highlighted(difference, "diff") if difference else NO_HTML
    found = {
        "difference": (f"Difference from {variant.after}", shown),
        "source": (f"Full source: {variant.path.name}", source),
        "machine_code": ("Machine code", compiled(facts, variant)),
        "counters": ("Hardware counters", counter_tables(facts, variant, root_from(f"{folder}/"))),
    }
    pages = [
        place.folded(
            f"{folder}/{what}.html",
            summary,
            f"{variant.name}: {summary}",
            content,
            anchor=f"{variant.name}-{what}",
        )
        for what, (summary, content) in found.items()
        if content
    ]
    figures = figures_of(facts, variant, place.root)
    return macros("evidence.html").variant(figures, pages, measuring(facts, variant))


def measuring(facts: StudyFacts, variant: Variant) -> str:
    """The command that measures the variant again, in the grid of the shown results."""
    target = f"measured/{facts.study.name}/{variant.name}"
    if facts.inputs.results.resolve().is_relative_to(SMOKE):
        return f"snakemake --cores 8 --config grid=smoke -f {SMOKE.relative_to(ROOT)}/{target}"
    return f"snakemake --cores 8 -f build/{target}"


def _sentences(facts: StudyFacts, variant: Variant) -> list[str]:
    """What came out on each machine where there is something to say."""
    is_step = variant.role in ("step", "beyond") or variant.after
    sentence_on = result_sentence if is_step else reach_sentence
    sentences = [sentence_on(facts, machine, variant) for machine in facts.machines]
    return [sentence for sentence in sentences if sentence]


Column = Callable[[str, MeasuredRow], str]
"""A cell of the table of figures, from a machine and its measured time."""


def figures_of(facts: StudyFacts, variant: Variant, root: str) -> Markup:
    """Times of the variant on each machine in its shown case; empty without a figure."""
    if not any(facts.figures.time(machine, variant) for machine in facts.machines):
        return NO_HTML
    case = facts.study.shown_case(variant)
    columns = _columns(facts, variant)
    rows: list[list[object]] = []
    for machine in facts.machines:
        time = facts.figures.time(machine, variant)
        metric = time.metric if time else ""
        address = samples_address(machine, facts.study.name, variant.name, case.id, metric)
        name = facts.inputs.called(machine)
        samples = link(f"{root}{address}", name)
        if time is not None:
            rows.append([samples, *(write(machine, time) for write in columns.values())])
            continue
        state, reason = facts.figures.absence(machine, variant, case)
        first = name if state == NOT_MEASURED else samples
        note = f"{state}: {reason}" if reason else state
        rows.append([first, note, *[""] * (len(columns) - 1)])
    where = "" if case.id == facts.study.headline else f"Case {case.id}"
    names = ["machine", *columns]
    return table(names, rows, caption=where, numeric=names[3:])


def _columns(facts: StudyFacts, variant: Variant) -> dict[str, Column]:
    """The columns after the machine's, by their titles."""
    study, case = facts.study, facts.study.shown_case(variant)
    columns: dict[str, Column] = {
        "runs": lambda _, time: runs_phrase(time.runs, time.hosts),
        "clock": lambda _, time: study.clock_of(variant, time.metric) + _flags(time),
        "time": lambda _, time: quantity(time.median, "s") + APART_MARK * (time.apart > 0),
        SPREAD: lambda _, time: metric_spread(time, study.metrics[time.metric]),
    }
    if case.payload_bytes:
        columns["rate"] = partial(_rate, case)
    if variant.after:
        compare = partial(_ratio, facts, variant, study.variant(variant.after))
        columns[f"against {variant.after}"] = compare
    if variant.role in ("step", "beyond"):
        for ceiling in study.ceilings_of(variant):
            columns[f"of {ceiling.name}"] = partial(_share, facts, variant, ceiling)
    for name, metric in study.metrics.items():
        if metric.unit != "s" and any(
            facts.figures.metric(machine, variant, name) for machine in facts.machines
        ):
            columns[metric.label] = partial(_other_metric, facts, variant, name)
    return columns


def _rate(case: Case, _: str, time: MeasuredRow) -> str:
    payload = delivered_bytes(case, time.metric)
    return gigabytes_per_second(payload / time.median / 1e9) if payload else ""


def _flags(row: MeasuredRow) -> str:
    flags = []
    if row.stale:
        flags.append("stale")
    if not row.verified:
        flags.append("not verified")
    if row.apart:
        flags.append(f"{row.apart} of {row.runs} runs outside the interval of the others")
    if row.throttled > 0:
        flags.append(f"throttled in {percent(row.throttled)} of samples")
    if row.disturbed:
        flags.append(f"disturbed in {row.disturbed} of {row.rounds} rounds")
    return "".join(f", {flag}" for flag in flags)


def _ratio(
    facts: StudyFacts, variant: Variant, before: Variant, machine: str, time: MeasuredRow
) -> str:
    row = facts.figures.comparison(machine, variant, before)
    if row is None:
        return ""
    found = spread(row, ratio_interval(row.ci_low, row.ci_high), ratio)
    figure = with_interval(ratio(row.ratio), "; ".join(filter(None, [found, _basis(row, time)])))
    by = ["by rate"] * facts.figures.is_of_rates(row) + [facts.figures.other_clock(row, time)]
    return " ".join(filter(None, [figure, *by]))


def _basis(row: RatioRow, time: MeasuredRow) -> str:
    """The runs and hosts of a ratio, if these are not those of the time beside it."""
    return "" if (row.runs, row.hosts) == (time.runs, time.hosts) else basis_phrase(row)


def _share(
    facts: StudyFacts, variant: Variant, ceiling: Variant, machine: str, time: MeasuredRow
) -> str:
    row = facts.figures.comparison(machine, variant, ceiling)
    if row is None:
        return ""
    share = with_interval(percent(row.ratio), _basis(row, time))
    return " ".join(filter(None, [share, facts.figures.other_clock(row, time)]))


def _other_metric(
    facts: StudyFacts, variant: Variant, metric: str, machine: str, _: MeasuredRow
) -> str:
    row = facts.figures.metric(machine, variant, metric)
    return "" if row is None else facts.study.metrics[metric].write(row.median)
