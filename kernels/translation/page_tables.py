"""Tables of the model of translation: its parameters, and those that tools/reach.cu finds."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup

from analysis.api.charts import PageTable, StudyFacts
from analysis.api.model import ABOUT
from analysis.api.quantities import INTERVAL, quantity, quantity_interval
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


TABLES: Final = {"parameters": parameters, "reach": reach}
