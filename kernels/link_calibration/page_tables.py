"""Tables of the link model: its errors, and links that were not measured."""

from __future__ import annotations

from typing import Final

from analysis.api.charts import PageTable, StudyFacts
from analysis.api.model import JUDGED_WITHIN, USES
from analysis.api.quantities import percent, signed_percent
from kernels.link_calibration.other_links import predicted_links, stated_links

WITHIN: Final = "within " + " or ".join(f"{share * 100:g} %" for share in JUDGED_WITHIN.values())


def judgement(facts: StudyFacts) -> PageTable:
    """The errors of the model where the link clearly binds, by machine and use."""
    columns = ["machine", "use", "points", "judged", WITHIN, "worst judged", "case"]
    rows = []
    groups = {
        (str(machine), str(use)): points
        for (machine, use), points in facts.predictions.groupby(["machine", "use"])
    }
    for machine, use in sorted(groups, key=lambda key: (key[0], USES.index(key[1]))):
        points = groups[machine, use]
        judged = points[points["judged"]]
        sizes = judged["residual"].abs()
        near = int((sizes <= judged["binding"].map(JUDGED_WITHIN)).sum())
        row = [facts.inputs.called(machine), use, str(len(points)), str(len(judged))]
        if len(judged):
            worst = judged.iloc[int(sizes.to_numpy().argmax())]
            row.append(f"{near} ({percent(near / len(judged))})")
            row += [signed_percent(worst["residual"]), f"{worst['variant']} {worst['case']}"]
        rows.append([*row, *[""] * (len(columns) - len(row))])
    return PageTable(columns, rows, "No machine has been calibrated yet.", columns[2:6])


TABLES: Final = {
    "judgement": judgement,
    "predicted_links": predicted_links,
    "stated_links": stated_links,
}
