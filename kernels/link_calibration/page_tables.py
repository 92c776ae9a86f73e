"""The table of rates of large copies that the link model allows over other links, beside published
ones."""

from __future__ import annotations

from itertools import product
from typing import Final

from markupsafe import Markup

from analysis.api.charts import Chip, PageTable, StudyFacts
from analysis.api.model import EQUAL_WITHIN, Link, predict, read_links
from analysis.api.quantities import quantity, signed_percent
from analysis.api.study import Access

COPY_BYTES: Final = 2**30
IN_FLIGHT_BYTES: Final = {"contiguous": 2048, "copy_engine": 0}
"""Bytes that a warp of a copy by SMs has in flight: 64 a lane."""
COPIED: Final = {"contiguous": "SMs", "copy_engine": "the copy engine"}
"""Kinds of large copies in words."""
NOT_CALIBRATED: Final = "No machine with a known link has been calibrated yet."


def calibrated_chips(facts: StudyFacts) -> list[tuple[Chip, Link]]:
    """The machines with calibrated parameters and a known link."""
    found = []
    for machine, chip in facts.chips.items():
        about = facts.inputs.machines[machine]
        pcie = {name: about.get(f"pcie_{name}") for name in ("generation", "width")}
        found += [(chip, link) for link in read_links() if link.pcie == pcie]
    return found


def predicted_links(facts: StudyFacts) -> PageTable:
    """Rates of large copies that the model allows over links, with the first calibrated chip behind
    them, beside published ones. For the link of the calibrated machine, its figures count."""
    columns = ["link", "copy by", "predicted", "published", "published vs. predicted", "verdict"]
    rows = []
    for (chip, calibrated), link in product(calibrated_chips(facts)[:1], read_links()):
        for published in link.published:
            in_flight = IN_FLIGHT_BYTES[published.reads]
            access = Access(published.reads, COPY_BYTES, in_flight_bytes=in_flight)
            seconds = predict(access, chip.sms, link, chip.parameters, calibrated)
            predicted = COPY_BYTES / seconds
            difference = published.rate / predicted - 1
            verdict = "refuted" if abs(difference) > EQUAL_WITHIN else "not refuted"
            rates = (quantity(rate, "B/s") for rate in (predicted, published.rate))
            row = [link.title, COPIED[published.reads], *rates, signed_percent(difference)]
            source = Markup('<a href="{}">{}</a>').format(published.address, published.what)
            rows.append([*row, "measured here" if link == calibrated else verdict, source])
    return PageTable([*columns, "source"], rows, NOT_CALIBRATED, columns[2:5])


TABLES: Final = {"predicted_links": predicted_links}
