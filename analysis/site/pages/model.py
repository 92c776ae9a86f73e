"""What pages say of the link model: its parameters, and measured times against predicted ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Final

from markupsafe import Markup

from analysis.base.errors import FieldError, require_known
from analysis.base.quantities import (
    INTERVAL,
    digits,
    gigabytes_per_second,
    listing,
    percent,
    quantity,
    quantity_interval,
    signed_percent,
)
from analysis.base.statistics import CONFIDENCE
from analysis.results.model import METRIC
from analysis.results.model.judge import (
    JUDGED_MARGIN,
    JUDGED_WITHIN,
    OF_CALIBRATION,
    USES,
)
from analysis.results.model.terms import ABOUT
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.journeys import machines_by_evidence
from analysis.site.facts.predicting import chips, fit_bases
from analysis.site.facts.rows import CounterRow, ModelRow, rows_of
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.html import code, figure, folded, folded_tables, gap, joined, table
from analysis.site.pages.page import macro
from analysis.site.pages.sentences import NOTHING
from analysis.study import Case, CaseValue, Variant
from analysis.study.calibration import FITTED

UNCALIBRATED: Final = gap("No machine has been calibrated yet, so nothing can be predicted.")
WITHIN: Final = "within " + " or ".join(f"{share * 100:g} %" for share in JUDGED_WITHIN.values())


@macro("link_parameters")
def parameter_table(inputs: Inputs) -> str:
    """The parameters of the link model on every machine."""
    if inputs.tables["model_parameters"].empty:
        return UNCALIBRATED
    rows = []
    for row in inputs.parameters:
        unit = row.unit if row.unit == "1" else row.unit.removeprefix("1")
        rows.append(
            [
                *(inputs.called(row.machine), code(row.parameter), ABOUT[row.parameter].meaning),
                quantity(row.value, unit) or "not measured",
                quantity_interval(row.value, row.ci_low, row.ci_high, unit),
                f"{row.cases} cases, {row.runs} run{'s' * (row.runs > 1)}",
            ]
        )
    columns = ["machine", "parameter", "meaning", "value", INTERVAL, "from"]
    return table(columns, rows, numeric=columns[3:5])


@macro()
def model_basis(inputs: Inputs) -> str:
    """The cases and runs of each machine that the model is fitted to, as a clause of a caption."""
    found = [f"{basis} on {inputs.called(machine)}" for machine, basis in fit_bases(inputs).items()]
    return f"model fitted to {listing(found)}" if found else "model (no machine is calibrated)"


@macro()
def unjudged(facts: StudyFacts) -> str:
    """The variants and cases that the link model cannot judge, with the reason."""
    if facts.predictions.empty:
        return UNCALIBRATED
    rows = [
        [code(variant.name), "every machine", "none", reason]
        for variant in facts.study.subjects
        if (reason := _why_unpredicted(variant))
    ]
    groups = facts.predictions.groupby(["variant", "machine"], sort=False)
    for (name, machine), points in sorted(groups, key=lambda one: one[1]["judged"].any()):
        others = rows_of(points[~points["judged"]], ModelRow)
        if others:
            count = f"{len(points) - len(others)} of {len(points)}"
            where = facts.inputs.called(str(machine))
            rows.append([code(str(name)), where, count, _why_unjudged(others)])
    if not rows:
        return "The model judges every variant in every case."
    columns = ["variant", "machine", "judged cases", "reason for the others"]
    reasons = table(columns, rows, numeric=columns[2:3])
    return folded("Variants and cases that the model cannot judge", reasons)


def _why_unpredicted(variant: Variant) -> str:
    """Why the model says nothing of the variant; empty where it does."""
    if variant.link is not None:
        return ""
    if variant.host_work:
        return "the CPU takes part, and the model covers only reads by the GPU"
    return "the model has no description of its reads"


def _why_unjudged(points: Sequence[ModelRow]) -> str:
    """Why no judged term surely binds `points`, with how many each reason concerns."""
    reasons = Counter(
        f"the {point.binding}'s term is less than {JUDGED_MARGIN:g} times the next"
        if point.binding in JUDGED_WITHIN
        else f"bound by {point.binding}"
        for point in points
    )
    return "; ".join(f"{reason} in {count}" for reason, count in reasons.most_common())


@macro()
def judgement(facts: StudyFacts) -> str:
    """The errors of the link model where the link clearly binds."""
    if facts.predictions.empty:
        return UNCALIBRATED
    rows = []
    groups = facts.predictions.groupby(["machine", "use"])
    for (machine, use), points in sorted(
        groups, key=lambda one: (one[0][0], USES.index(one[0][1]))
    ):
        chosen = rows_of(points[points["judged"]], ModelRow)
        row = [facts.inputs.called(str(machine)), use, str(len(points)), str(len(chosen))]
        if not chosen:
            rows.append([*row, "", "", ""])
            continue
        worst = max(chosen, key=lambda point: abs(point.residual))
        near = sum(abs(point.residual) <= JUDGED_WITHIN[point.binding] for point in chosen)
        rows.append(
            [
                *(*row, f"{near} ({percent(near / len(chosen))})"),
                signed_percent(worst.residual),
                f"{worst.variant} {worst.case}",
            ]
        )
    columns = ["machine", "use", "points", "judged", WITHIN, "worst judged", "case"]
    rule = (
        f"A point is judged if the term of {' or of '.join(JUDGED_WITHIN)} is at least"
        f" {JUDGED_MARGIN:g} times any other. If two terms are close, each delays the other, and"
        " the larger one alone underestimates the time."
    )
    rule += f" Basis: {model_basis(facts.inputs)}."
    return f"{rule}\n\n{table(columns, rows, numeric=columns[2:6])}"


@macro("model_in_brief")
def in_brief(facts: StudyFacts) -> str:
    """One sentence on how many times that the fit has not seen the model predicts; empty without
    any."""
    if facts.predictions.empty:
        return ""
    table = facts.predictions
    is_unseen = table["judged"] & (table["use"] != OF_CALIBRATION[FITTED])
    counts = {}
    for machine in machines_by_evidence(facts):
        unseen = rows_of(table[is_unseen & (table["machine"] == machine)], ModelRow)
        near = sum(abs(point.residual) <= JUDGED_WITHIN[point.binding] for point in unseen)
        if unseen:
            counts[machine] = near, len(unseen)
    if not counts:
        return ""
    near, of_all = next(iter(counts.values()))
    extent = "" if near >= CONFIDENCE * of_all else "only in part "
    found = [f"{n} of {m} on {facts.inputs.called(name)}" for name, (n, m) in counts.items()]
    return (
        f"The start and length of each row {extent}predict its time over the link. Of the times"
        f" that the fit has not seen, {listing(found)} are {WITHIN} of the prediction"
        f" ({model_basis(facts.inputs)})."
    )


@macro()
def misses(facts: StudyFacts) -> str:
    """The judged points outside the accepted range of the link model."""
    if facts.predictions.empty:
        return UNCALIBRATED
    chosen = rows_of(facts.predictions[facts.predictions["judged"]], ModelRow)
    rows = [
        [
            *(facts.inputs.called(point.machine), code(point.variant), point.case, point.binding),
            *(quantity(point.predicted, "s"), quantity(point.measured, "s")),
            signed_percent(point.residual),
        ]
        for point in sorted(chosen, key=lambda point: -abs(point.residual))
        if abs(point.residual) > JUDGED_WITHIN[point.binding]
    ]
    if not rows:
        return f"Every judged point is {WITHIN} of its prediction."
    columns = ["machine", "variant", "case", "bound by", "predicted", "measured"]
    columns += ["measured vs. predicted"]
    return table(columns, rows, numeric=columns[4:])


@macro("rates")
def rate_table(facts: StudyFacts, variant: str, down: str, across: str, *values: CaseValue) -> str:
    """A variant's rates over two keys of its case, measured or else predicted by the link model.

    variant: name of the variant
    down: case key of the rows
    across: numeric case key of the columns, with all its values
    values: values of the rows
    """
    of = facts.study.variant(variant)
    shown = facts.study.shown_case(of)
    for key in (down, across):
        require_known("case key", key, sorted(shown.values))
    like = [case for case in of.cases if _apart(shown, case) <= {down, across}]
    payloads = sorted({case.payload_bytes for case in like})
    if len(payloads) > 1:
        raise FieldError(f"{down}, {across}", "keys that do not change the payload", payloads)
    columns = sorted({case.number(across) for case in like})
    heads = [down, *(f"{across} {column:,}" for column in columns)]
    tables = []
    for machine in facts.machines:
        rows = [
            [
                code(value),
                *(
                    _rate(facts, machine, of, _with(shown, {down: value, across: column}))
                    for column in columns
                ),
            ]
            for value in values
        ]
        called = facts.inputs.called(machine)
        basis = fit_bases(facts.inputs).get(machine, "nothing")
        caption = (
            f"{called}, GB/s of payload by device time. ≈: predicted, not measured, by a model"
            f" fitted to {basis}."
        )
        tables.append(table(heads, rows, caption=caption, numeric=heads[1:]))
    return "\n\n".join(tables) or NOTHING


def _apart(one: Case, other: Case) -> set[str]:
    """The keys in which two cases differ."""
    keys = {*one.values, *other.values}
    return {key for key in keys if one.values.get(key) != other.values.get(key)}


def _with(case: Case, values: Mapping[str, CaseValue]) -> Case:
    return replace(case, values={**case.values, **values})


def _rate(facts: StudyFacts, machine: str, variant: Variant, case: Case) -> Markup | str:
    """The measured rate in GB/s, or the predicted one with a sign before it; empty without both."""
    row = facts.figures.find(machine, variant.name, case.id, METRIC)
    if row is not None and not row.stale:
        return figure(digits(case.payload_bytes / row.median / 1e9), row)
    chip = chips(facts.inputs).get(machine)
    seconds = chip.seconds(variant, case) if chip else math.nan
    return "" if math.isnan(seconds) else f"≈ {digits(case.payload_bytes / seconds / 1e9)}"


@macro("predictions")
def model_table(facts: StudyFacts) -> str:
    """The limit of each variant by the link model, and its distance from it."""
    predicted = {
        (row.machine, row.variant, row.case): row for row in rows_of(facts.predictions, ModelRow)
    }
    rows = []
    for variant in facts.study.variants:
        case = facts.study.shown_case(variant)
        for machine in facts.machines:
            row = predicted.get((machine, variant.name, case.id))
            if row is None:
                continue
            rates = [case.payload_bytes / time / 1e9 for time in (row.predicted, row.measured)]
            rows.append(
                [
                    *(
                        facts.inputs.called(machine),
                        code(variant.name),
                        row.binding,
                        digits(row.margin),
                    ),
                    *(quantity(row.predicted, "s"), quantity(row.measured, "s")),
                    *(gigabytes_per_second(rate) for rate in rates),
                    signed_percent(row.residual),
                ]
            )
    if not rows:
        return UNCALIBRATED
    columns = ["machine", "variant", "bound by", "ratio to the next term", "predicted", "measured"]
    columns += ["predicted rate", "measured rate", "measured vs. predicted"]
    limits = table(columns, rows, numeric=columns[3:])
    return folded("Limit of each variant, and its distance from it", limits)


@macro("counters")
def counter_table(facts: StudyFacts) -> str | Markup:
    """The hardware counters that the link model predicts, beside those counted."""
    if not facts.predicted_counters:
        return gap("None of the predicted counters has been captured yet.")
    compared: dict[tuple[str, str], list[CounterRow]] = {}
    groups: dict[Markup | str, list[list[object]]] = {}
    for row in facts.predicted_counters:
        called = facts.inputs.called(row.machine)
        compared.setdefault((called, row.metric), []).append(row)
        line: list[object] = [
            *(code(row.variant), code(row.metric)),
            *(_count(value, row.unit) for value in (row.predicted, row.counted)),
            signed_percent(row.residual),
        ]
        groups.setdefault(joined(", ", (called, row.case)), []).append(line)
    columns = ["variant", "counter", "predicted", "counted", "counted vs. predicted"]
    every = folded_tables(columns, groups, numeric=columns[2:])
    near = ["machine", "counter", "compared", "median distance", "furthest", "case"]
    rows = [[machine, code(name), *_nearness(of)] for (machine, name), of in compared.items()]
    return table(near, rows, numeric=near[2:5]) + every


def _nearness(compared: Sequence[CounterRow]) -> list[str]:
    """How many counts there are, how near they are to the predicted ones, and the furthest."""
    furthest = max(compared, key=lambda row: abs(row.residual))
    return [
        str(len(compared)),
        percent(median(abs(row.residual) for row in compared)),
        signed_percent(furthest.residual),
        f"{furthest.variant} {furthest.case}",
    ]


def _count(value: float, unit: str) -> str:
    return f"{value:,.0f}" if unit == "1" else quantity(value, unit)
