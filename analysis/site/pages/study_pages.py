"""Parts of a study's page beside its variants: the question, tables, and missing results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any, Final

from markupsafe import Markup

from analysis.base.errors import require_known
from analysis.base.quantities import (
    gigabytes_per_second,
    listing,
    quantity,
    speed,
    whole,
    with_interval,
)
from analysis.site.facts.basis import SPREAD, basis_phrase, metric_spread
from analysis.site.facts.findings import findings
from analysis.site.facts.rows import PublishedRow
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.captured import uncaptured
from analysis.site.pages.chart_figures import chart_figure
from analysis.site.pages.findings import advice_list, headline, other_findings, thesis
from analysis.site.pages.html import (
    NO_HTML,
    code,
    figure,
    folded,
    joined,
    listed,
    moment,
    plain,
    table,
    without_empty,
)
from analysis.site.pages.ledger import claims_of
from analysis.site.pages.machines import virtual_note
from analysis.site.pages.page import MACROS, Page, macro
from analysis.site.pages.sentences import NOTHING, headroom_sentence
from analysis.site.pages.source import source

SAMPLES: Final = (
    "[Data](../data.md) lists the samples of every variant, with commit, compiler and command."
    " [Machines](../machines.md) lists their hosts."
)


def lead(facts: StudyFacts, given: str = "") -> str:
    """The study's thesis, or its question until there is one, and its scope; Markdown and HTML. A
    thesis that is `given` as HTML is taken before that of the findings."""
    study = facts.study
    question = study.question.strip()
    opening = thesis(facts, given)
    scope = [question] if opening else []
    if study.write_up:
        date = f", {study.write_up.date}" if study.write_up.date else ""
        scope.append(f"Reproduces *{study.write_up.title}*{date}, and continues from there.")
    scope.append(f"Unless stated otherwise, figures are for the case `{study.headline}`.")
    scope += [virtual_note(facts.inputs, facts.machines, "../"), _out_of_reach(facts)]
    quiet = " ".join(filter(None, scope))
    return f"{opening or f'**{question}**'}\n\n{quiet}\n{{: .hp-quiet .hp-scope }}"


@macro()
def advice(facts: StudyFacts) -> str:
    """Advice of the findings, under a heading, and the other findings, folded."""
    parts: list[str] = []
    if advised := advice_list(facts):
        parts += ["## What to do", advised]
    if others := other_findings(facts):
        title = "More findings" if advised else "Findings"
        parts.append(folded(f"{title} ({len(others)})", listed("ul", others, "hp-findings")))
    return "\n\n".join(parts)


@macro()
def evidence(
    page: Page,
    facts: StudyFacts,
    caption: str = "",
    charts: Mapping[str, str] | None = None,
    tables: Sequence[str] = (),
) -> str:
    """The folded end of a study's page: claims, charts, tables, sources, missing results.

    caption: axes of the chart of all cases; without it, there is no such chart
    charts: captions of charts that the text does not show, by their names
    tables: names of tables that it does not show, as of `table`
    """
    drawn = {"cases": caption} if caption else {}
    parts = {
        "Claims and verdicts {: #claims .fold }": claims_of(facts, page.place),
        "The printed figures beside ours {: #as-published .fold }": (
            published_table(facts) if facts.published else ""
        ),
        "Charts and tables {: #charts-and-tables .fold }": "\n\n".join(
            [
                *(MACROS["table"](page, name, study=facts.study.name) for name in tables),
                *(
                    chart_figure(page, facts, name, text)
                    for name, text in {**(charts or {}), **drawn}.items()
                ),
            ]
        ),
        "Sources, machine code and figures of each variant {: #sources .fold }": (
            "" if "variants(" in (page.env.page.markdown or "") else source(facts, page.place)
        ),
        **_missing_section(facts),
        "Samples {: .fold }": SAMPLES,
    }
    return "\n\n".join(f"## {title}\n\n{text}" for title, text in parts.items() if text)


def _out_of_reach(facts: StudyFacts) -> str:
    """Number of variants without a figure on any machine that tried them, by reason; Markdown."""
    names: dict[str, list[str]] = {}
    for variant, reason in facts.unreached.items():
        names.setdefault(reason, []).append(variant)
    if not names:
        return ""
    most_first = sorted(names.items(), key=lambda one: len(one[1]), reverse=True)
    counted = [f"{len(alike)} ({plain(reason)})" for reason, alike in most_first]
    reasons = f": {listing(counted)}" if len(names) > 1 else f" ({plain(most_first[0][0])})"
    count = sum(map(len, names.values()))
    have = "has" if count == 1 else "have"
    return (
        f"{count} of {len(facts.study.variants)} variants {have} not been measured on any machine"
        f"{reasons}."
    )


def summary(facts: StudyFacts) -> str:
    """The question and the first two findings, as the description in a link to the page."""
    found = [headline(finding, result) for finding, result in findings(facts) if not result.few]
    return " ".join([" ".join(facts.study.question.split()), *found[:2]])


@macro()
def headroom(facts: StudyFacts, claim: str, bound: str) -> str:
    """The upper limit of a claimed speed-up, a sentence per machine.

    claim: id of a claim of this study
    bound: metric with the upper limit, a factor
    """
    require_known("claim", claim, [known.id for known in facts.study.claims])
    require_known("bound", bound, list(facts.study.metrics))
    rows = facts.verdicts.by_claim.get(claim, [])
    sentences = [headroom_sentence(facts, row.machine, row, bound) for row in rows]
    return "\n".join(f"- {sentence}" for sentence in sentences if sentence) or NOTHING


@macro("metrics")
def metric_table(facts: StudyFacts, *roles: str) -> str:
    """A table of every metric of some variants on every machine.

    roles: as of `variants`
    """
    rows = [
        [
            *(variant.title, facts.inputs.called(machine), facts.study.clock_of(variant, name)),
            figure(metric.write(row.median), row),
            metric_spread(row, metric),
            basis_phrase(row),
            *(whole(row.n), "stale" if row.stale else ""),
        ]
        for variant in facts.study.with_role(*roles)
        for machine in facts.machines
        for name, metric in facts.study.metrics.items()
        if (row := facts.figures.metric(machine, variant, name)) is not None
    ]
    columns = ["operation", "machine", "metric", "median", SPREAD, "runs", "samples", ""]
    return table(columns, rows, numeric=columns[3:6]) if rows else NOTHING


@macro("hosts")
def host_table(facts: StudyFacts, variant: str, *others: str) -> str:
    """The speed of one core of the host in each run, beside the rates of some variants.

    variant: name of the variant; rates are of its shown case
    others: names of further variants
    """
    names = [variant, *others]
    variants = [facts.study.variant(name) for name in names]
    payload = facts.study.shown_case(variants[0]).payload_bytes
    columns = ["run", "fixed loop on one core", "copy rate of one core", *names]
    tables = []
    for machine in facts.machines:
        figures = [facts.figures.by_run(row) for row in facts.figures.times(machine, *variants)]
        looks = {run.run: (run.begun, run.conditions) for runs in figures for run, _ in runs}
        times = [{run.run: seconds for run, seconds in runs} for runs in figures]
        rows = [
            [moment(begun), *_speed(known), *(speed(payload, of_run[run]) for of_run in times)]
            for run, (begun, known) in looks.items()
            if known and all(run in of_run for of_run in times)
        ]
        if rows:
            caption = f"On {facts.inputs.called(machine)}"
            tables.append(table(columns, rows, caption=caption, numeric=columns[1:]))
    return NO_HTML.join(tables) or "No run has measured the CPU of its host."


def _speed(looks: Sequence[Any]) -> list[str]:
    """Fixed loop and copy rate of one core: medians of `looks`, a run's checks of its host."""
    loop, copied = (
        median(getattr(look, key) for look in looks) for key in ("spin_s", "copy_bytes_per_s")
    )
    return [quantity(loop, "s"), gigabytes_per_second(copied / 1e9)]


def published_table(facts: StudyFacts) -> str:
    """The write-up's figures in SI units, beside the measured ones."""
    statements: dict[tuple[str, str, str], list[PublishedRow]] = {}
    for row in facts.published:
        statements.setdefault((row.variant, row.case, row.source), []).append(row)
    if not statements:
        return "Nothing has been published for this study."
    # The caption has a case, source or note that all rows share.
    cases, sources = ({key[index] for key in statements} for index in (1, 2))
    columns = ["variant", *(["case"] if len(cases) > 1 else [])]
    columns += ["source"] if len(sources) > 1 else []
    first_number = len(columns) + 1
    notes = _shared_notes(facts.published)
    columns += ["as printed", "time", "rate", *map(facts.inputs.called, facts.machines), "note"]
    rows = [
        [
            code(variant),
            *([case] if len(cases) > 1 else []),
            *([source] if len(sources) > 1 else []),
            "; ".join(f"{row.printed} {row.unit_printed}" for row in printed),
            *_best(facts, printed),
            "; ".join(
                dict.fromkeys(_note(row) for row in printed if row.unit_printed not in notes)
            ),
        ]
        for (variant, case, source), printed in statements.items()
    ]
    numeric = columns[first_number:-1]
    columns, filled = without_empty(columns, rows)
    caption = f"{listing(sorted(sources))}. {'; '.join(_unit_notes(notes))}"
    return table(columns, filled, caption=caption, numeric=numeric)


def _best(facts: StudyFacts, printed: list[PublishedRow]) -> list[str]:
    """Time and rate of one statement, by the printed time if there is one, and the measured rate on
    each machine."""
    row = next((row for row in printed if row.is_time), printed[0])
    time, rate = quantity(row.seconds, "s"), gigabytes_per_second(row.rate)
    return [time, rate, *(_measured_rate(facts, machine, row) for machine in facts.machines)]


def _note(row: PublishedRow) -> str:
    """Note of the write-up on a printed figure, and the true unit if it differs."""
    return row.note + (f", so {row.unit_meant}" if row.unit_meant != row.unit_printed else "")


def _shared_notes(published: list[PublishedRow]) -> dict[str, str]:
    """Notes by printed unit, for units with the same note in every row."""
    notes: dict[str, set[str]] = {}
    for row in published:
        notes.setdefault(row.unit_printed, set()).add(_note(row))
    return {unit: found.pop() for unit, found in notes.items() if len(found) == 1}


def _unit_notes(notes: Mapping[str, str]) -> Iterator[str]:
    """`GB/s and MB/s: note`, each note once."""
    for note in dict.fromkeys(notes.values()):
        yield f"{listing([unit for unit, other in notes.items() if other == note])}: {note}"


def _measured_rate(facts: StudyFacts, machine: str, row: PublishedRow) -> str:
    measured = facts.figures.find(machine, row.variant, row.case, row.metric)
    if measured is None:
        return ""
    return with_interval(speed(row.payload_bytes, measured.median), basis_phrase(measured))


def _missing_section(facts: StudyFacts) -> dict[str, str]:
    """Missing results by a heading with the number of their cases; empty if nothing is missing."""
    cases, parts = len(facts.skipped), missing(facts)
    if not parts:
        return {}
    count = f"{whole(cases)} case{'s' * (cases > 1)} without" if cases else "Captures without"
    return {f"{count} a result, with the reasons {{: #missing-results .fold }}": parts}


def missing(facts: StudyFacts) -> str:
    """Missing results with their reasons: skipped or failed cases, counters, timelines, and tables
    of the code; empty if nothing is missing."""
    rows = [[code(name), why] for name, why in facts.absent.items()]
    absent = table(["table of the code", "reason"], rows) if rows else ""
    parts = [_skipped_table(facts), uncaptured(facts), absent]
    return "\n\n".join(part for part in parts if part)


def _skipped_table(facts: StudyFacts) -> str:
    if facts.skipped.empty:
        return ""
    columns = ["machine", "variant", "status", "reason"]
    groups = facts.skipped.groupby(columns, sort=True)["case"].agg(list).reset_index()
    variants: dict[tuple[str, ...], list[Markup]] = {}  # one row per set of equal other cells
    for machine, variant, status, reason, cases in groups.itertuples(index=False):
        alike = facts.inputs.called(machine), status, reason, _case_list(facts, variant, cases)
        variants.setdefault(alike, []).append(code(variant))
    rows = [[*alike, joined(", ", names)] for alike, names in variants.items()]
    return table(["machine", "status", "reason", "cases", "variants"], rows)


def _case_list(facts: StudyFacts, variant: str, cases: list[str]) -> str:
    if len(cases) == len(facts.study.variant(variant).cases):
        return "all"
    return "; ".join(cases)
