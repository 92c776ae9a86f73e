"""Tables of the link model: its errors, and the rates of large copies that it allows over other
links, beside published ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

from markupsafe import Markup

from analysis.api.charts import Chip, PageTable, StudyFacts
from analysis.api.model import (
    EQUAL_WITHIN,
    JUDGED_WITHIN,
    USES,
    Link,
    predict,
    read_links,
)
from analysis.api.quantities import percent, quantity, signed_percent
from analysis.api.study import Access

COPY_BYTES: Final = 2**30
IN_FLIGHT_BYTES: Final = {"contiguous": 2048, "copy_engine": 0}
"""Bytes that a warp of a copy by SMs has in flight: 64 a lane."""
COPIED: Final = {"contiguous": "SMs", "copy_engine": "the copy engine"}
"""Kinds of large copies in words."""
WITHIN: Final = "within " + " or ".join(f"{share * 100:g} %" for share in JUDGED_WITHIN.values())
NOT_CALIBRATED: Final = "No machine with a known link has been calibrated yet."


def judgement(facts: StudyFacts) -> PageTable:
    """The errors of the model where the link clearly binds, by machine and use."""
    columns = ["machine", "use", "points", "judged", WITHIN, "worst judged", "case"]
    rows = []
    order = facts.predictions["use"].map(USES.index)
    for (machine, _, use), points in facts.predictions.groupby(["machine", order, "use"]):
        judged = points[points["judged"]]
        sizes = judged["residual"].abs()
        near = int((sizes <= judged["binding"].map(JUDGED_WITHIN)).sum())
        row = [facts.inputs.called(str(machine)), str(use), str(len(points)), str(len(judged))]
        if len(judged):
            worst = judged.iloc[int(sizes.to_numpy().argmax())]
            row.append(f"{near} ({percent(near / len(judged))})")
            row += [signed_percent(worst["residual"]), f"{worst['variant']} {worst['case']}"]
        rows.append([*row, *[""] * (len(columns) - len(row))])
    return PageTable(columns, rows, "No machine has been calibrated yet.", columns[2:6])


def calibrated_chips(facts: StudyFacts) -> Iterator[tuple[Chip, Link]]:
    """Machines with calibrated parameters and a known link."""
    for machine, chip in facts.chips.items():
        about = facts.inputs.machines[machine]
        pcie = {name: about.get(f"pcie_{name}") for name in ("generation", "width")}
        yield from ((chip, link) for link in read_links() if link.pcie == pcie)


def predicted_links(facts: StudyFacts) -> PageTable:
    """Published rates of large copies over links, beside those that the model allows the first
    calibrated chip behind that link. For the link of the calibrated machine, its figures count."""
    columns = ["link", "copy by", "predicted", "published", "published vs. predicted", "verdict"]
    rows = []
    for (chip, calibrated), link in product([*calibrated_chips(facts)][:1], read_links()):
        for published in link.published:
            in_flight = IN_FLIGHT_BYTES[published.reads]
            access = Access(published.reads, COPY_BYTES, in_flight_bytes=in_flight)
            seconds = predict(access, chip.sms, link, chip.parameters, calibrated)
            difference = published.rate * seconds / COPY_BYTES - 1
            verdict = "refuted" if abs(difference) > EQUAL_WITHIN else "not refuted"
            row = [link.title, COPIED[published.reads], quantity(COPY_BYTES / seconds, "B/s")]
            row += [quantity(published.rate, "B/s"), signed_percent(difference)]
            row.append("measured here" if link == calibrated else verdict)
            source = Markup('<a href="{}">{}</a>').format(published.address, published.what)
            rows.append([*row, source])
    return PageTable([*columns, "source"], rows, NOT_CALIBRATED, columns[2:5])


TABLES: Final = {"judgement": judgement, "predicted_links": predicted_links}
