"""Tables of the link model: its errors, and the rates of large copies that it allows over other
links, beside published ones."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup

from analysis.api.charts import Chip, PageTable, StudyFacts
from analysis.api.model import (
    EQUAL_WITHIN,
    JUDGED_WITHIN,
    USES,
    Link,
    PublishedRate,
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


def calibrated_chip(facts: StudyFacts) -> tuple[Chip, Link] | None:
    """The first machine with calibrated parameters and a known link; None without one."""
    for machine, chip in facts.chips.items():
        about = facts.inputs.machines[machine]
        pcie = {name: about.get(f"pcie_{name}") for name in ("generation", "width")}
        if link := next((link for link in read_links() if link.pcie == pcie), None):
            return chip, link
    return None


def predictions(facts: StudyFacts) -> list[tuple[Link, PublishedRate, float]]:
    """Every published rate of a large copy over a link, beside the predicted one in B/s, by the
    calibrated chip behind that link."""
    if (known := calibrated_chip(facts)) is None:
        return []
    (chip, calibrated), found = known, []
    for link in read_links():
        for published in link.published:
            in_flight = IN_FLIGHT_BYTES[published.reads]
            access = Access(published.reads, COPY_BYTES, in_flight_bytes=in_flight)
            seconds = predict(access, chip.sms, link, chip.parameters, calibrated)
            found.append((link, published, COPY_BYTES / seconds))
    return found


def predicted_links(facts: StudyFacts) -> PageTable:
    """Rates of large copies that the model allows over links, beside published ones. For the link
    of the calibrated machine, its figures count."""
    columns = ["link", "copy by", "predicted", "published", "published vs. predicted", "verdict"]
    known, rows = calibrated_chip(facts), []
    for link, published, predicted in predictions(facts):
        difference = published.rate / predicted - 1
        verdict = "refuted" if abs(difference) > EQUAL_WITHIN else "not refuted"
        is_calibrated = known is not None and link == known[1]
        rates = (quantity(rate, "B/s") for rate in (predicted, published.rate))
        row = [link.title, COPIED[published.reads], *rates, signed_percent(difference)]
        source = Markup('<a href="{}">{}</a>').format(published.address, published.what)
        rows.append([*row, "measured here" if is_calibrated else verdict, source])
    return PageTable([*columns, "source"], rows, NOT_CALIBRATED, columns[2:5])


TABLES: Final = {"judgement": judgement, "predicted_links": predicted_links}
