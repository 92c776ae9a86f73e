"""Tables of the model of translation: its parameters, and where it is wrong."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup

from analysis.api.charts import PageTable, StudyFacts
from analysis.api.model import ABOUT, JUDGED_WITHIN
from analysis.api.quantities import INTERVAL, digits, quantity, quantity_interval, signed_percent
from kernels.translation.reach_table import reach

CODE: Final = Markup("<code>{}</code>")


def parameters(facts: StudyFacts) -> PageTable:
    """The parameters of the link model on every machine."""
    columns = ["machine", "parameter", "meaning", "value", INTERVAL, "from"]
    rows = []
    for row in facts.inputs.parameters:
        unit = row.unit if row.unit == "1" else row.unit.removeprefix("1")
        value = quantity(row.value, unit) or "not measured"
        interval = quantity_interval(row.value, row.ci_low, row.ci_high, unit)
        name = [CODE.format(row.parameter), ABOUT[row.parameter].meaning]
        basis = f"{row.cases} cases, {row.runs} run{'s' * (row.runs > 1)}"
        rows.append([facts.inputs.called(row.machine), *name, value, interval, basis])
    return PageTable(columns, rows, "No machine has been calibrated yet.", columns[4:])


def misses(facts: StudyFacts) -> PageTable:
    """The judged points outside the accepted range of the model, the worst first."""
    columns = ["machine", "variant", "case", "bound by", "ratio to the next term", "predicted"]
    columns += ["measured", "measured vs. predicted"]
    points = facts.predictions[facts.predictions["judged"]]
    sizes = points["residual"].abs()
    points = points[sizes > points["binding"].map(JUDGED_WITHIN).astype(float)]
    points = points.sort_values("residual", key=abs, ascending=False, kind="stable")
    rows = [
        [
            facts.inputs.called(point["machine"]),
            CODE.format(point["variant"]),
            point["case"],
            point["binding"],
            digits(point["margin"]),
            quantity(point["predicted"], "s"),
            quantity(point["measured"], "s"),
            signed_percent(point["residual"]),
        ]
        for point in points.to_dict("records")
    ]
    none = "Every judged point lies within the accepted range."
    return PageTable(columns, rows, none, columns[4:], may_be_empty=True)


TABLES: Final = {"parameters": parameters, "misses": misses, "reach": reach}
