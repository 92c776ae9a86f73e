"""What pages say of the link model: its parameters, and measured times against predicted ones."""

from __future__ import annotations

from typing import Final

from analysis.facts.inputs import Inputs
from analysis.facts.points import Context
from analysis.model.judge import JUDGED_MARGIN, JUDGED_WITHIN, judged, uses
from analysis.model.terms import MEANING
from analysis.quantities import (
    INTERVAL,
    digits,
    gigabytes_per_second,
    percent,
    quantity,
    quantity_interval,
    signed_percent,
)
from analysis.report.html import code, table

UNCALIBRATED: Final = "No machine has been calibrated yet, so nothing can be predicted."
WITHIN: Final = f"within {JUDGED_WITHIN * 100:g} %"


def parameter_table(inputs: Inputs) -> str:
    """Every machine's parameters with their intervals and meanings."""
    if inputs.model_parameters.empty:
        return UNCALIBRATED
    rows = []
    for row in inputs.model_parameters.to_dict("records"):
        low, high = float(row["ci_low"]), float(row["ci_high"])
        unit = row["unit"].removeprefix("1")
        rows.append(
            [
                *(row["machine"], code(row["parameter"]), MEANING[row["parameter"]]),
                quantity(float(row["value"]), unit) or "not measured",
                quantity_interval(low, high, unit),
            ]
        )
    columns = ["machine", "parameter", "what it is", "value", INTERVAL]
    return table(columns, rows, numeric=columns[3:])


def judgement(context: Context) -> str:
    """How many points of the study the link surely binds, and how near they are; Markdown.

    Of the calibration, fitted and held-back points apart.
    """
    own = context.inputs.of_study(context.inputs.model, context.study)
    if own.empty:
        return UNCALIBRATED
    rows = []
    for (machine, use), points in own.assign(use=uses(own, context.inputs.studies)).groupby(
        ["machine", "use"]
    ):
        chosen = points[judged(points)]
        row = [machine, use, str(len(points)), str(len(chosen))]
        if chosen.empty:
            rows.append([*row, "", "", ""])
            continue
        residual = chosen["residual"].abs().reset_index(drop=True)
        worst = chosen.iloc[int(residual.argmax())]
        near = int((residual <= JUDGED_WITHIN).sum())
        rows.append(
            [
                *(*row, f"{near} ({percent(near / len(chosen))})"),
                signed_percent(float(worst["residual"])),
                f"{worst['variant']} {worst['case']}",
            ]
        )
    columns = ["machine", "points", "number", "judged", WITHIN, "worst judged", "where"]
    say = (
        f"A point is judged where the link's term is at least {JUDGED_MARGIN:g} times any"
        " other: where two terms are close, waiting for the one delays the other and the larger"
        " alone is too short a time."
    )
    return f"{say}\n\n{table(columns, rows, numeric=columns[2:6])}"


def model_table(context: Context) -> str:
    """Each variant's shown case on every machine: what limits it, and how far it is from that."""
    own = context.inputs.of_study(context.inputs.model, context.study)
    predicted = {
        (row["machine"], row["variant"], row["case"]): row for row in own.to_dict("records")
    }
    rows = []
    for variant in context.study.variants:
        case = context.shown_case(variant)
        for machine in context.machines:
            row = predicted.get((machine, variant.name, case.id))
            if row is None:
                continue
            limit, seconds = float(row["predicted"]), float(row["measured"])
            rates = [case.payload_bytes / time / 1e9 for time in (limit, seconds)]
            rows.append(
                [
                    *(machine, code(variant.name), row["binding"], digits(float(row["margin"]))),
                    *(quantity(limit, "s"), quantity(seconds, "s")),
                    *(gigabytes_per_second(rate) for rate in rates),
                    signed_percent(float(row["residual"])),
                ]
            )
    if not rows:
        return UNCALIBRATED
    columns = ["machine", "variant", "bound by", "times the next term", "predicted", "measured"]
    columns += ["predicted rate", "measured rate", "measured against predicted"]
    return table(columns, rows, numeric=columns[3:])


def counter_table(context: Context) -> str:
    """Predicted counters of the hardware against counted ones."""
    own = context.inputs.of_study(context.inputs.model_counters, context.study)
    if own.empty:
        return "No counters of what the model predicts have been captured yet."
    rows = [
        [
            *(row["machine"], code(row["variant"]), row["case"], code(row["metric"])),
            *(_count(float(row[name]), row["unit"]) for name in ("predicted", "counted")),
            signed_percent(float(row["residual"])),
        ]
        for row in own.to_dict("records")
    ]
    columns = ["machine", "variant", "case", "counter", "predicted", "counted"]
    columns += ["counted against predicted"]
    return table(columns, rows, numeric=columns[4:])


def _count(value: float, unit: str) -> str:
    return f"{value:,.0f}" if unit == "1" else quantity(value, unit)
