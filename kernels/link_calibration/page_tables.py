"""Tables of the link model: its errors, and the rates of large copies that it allows over other
links, beside published ones."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Final

from markupsafe import Markup

from analysis.api.charts import Chip, PageTable, StudyFacts
from analysis.api.files import read_json
from analysis.api.model import (
    EQUAL_WITHIN,
    JUDGED_WITHIN,
    USES,
    Link,
    predict,
    read_links,
)
from analysis.api.quantities import binary, percent, quantity, signed_percent
from analysis.api.study import Access

COPY_BYTES: Final = 2**30
IN_FLIGHT_BYTES: Final = {"contiguous": 2048, "copy_engine": 0}
"""Bytes that a warp of a copy by SMs has in flight: 64 a lane."""
COPIED: Final = {"contiguous": "SMs", "copy_engine": "the copy engine"}
"""Kinds of large copies in words."""
WITHIN: Final = "within " + " or ".join(f"{share * 100:g} %" for share in JUDGED_WITHIN.values())
PROBES: Final = Path(__file__).parents[2] / "tools" / "reach"
"""<machine>/reach.json: outputs of tools/reach.cu with --json."""
LIMIT_BYTES: Final = 200_000
"""Maximum size of an output."""
OTHER_GPUS: Final = {
    "A100": "PCIe 4.0 x16",
    "L40S": "PCIe 4.0 x16",
    "RTX 4090": "PCIe 4.0 x16",
    "B200": "PCIe 5.0 x16",
    "GH200": "NVLink-C2C",
    "GB200": "NVLink-C2C",
    "GB300": "NVLink-C2C",
}
"""GPUs without an output, with their link."""
NOT_RUN: Final = Markup('<a href="#send-it">send yours</a>')
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


def gpus(facts: StudyFacts) -> PageTable:
    """Known GPUs: those measured by the probe, then others."""
    rows: list[list[object]] = []
    for path in sorted(PROBES.glob("*/reach.json")):
        probe = read_json(path, LIMIT_BYTES)
        pool, rate, *_ = probe["pools"][-1]
        covered = quantity(probe["reach_bytes"], "B") if probe["reach_bytes"] else "unknown"
        gathered = f"{quantity(rate, 'B/s')}, {probe['row_bytes']} B from {binary(pool)}"
        about = facts.inputs.machines.get(path.parent.name, {})
        link = f"PCIe {about.get('pcie_generation')}.0 x{about.get('pcie_width')}"
        rows.append([probe["gpu"], link if link in OTHER_GPUS.values() else "", covered, gathered])
    rows += [[gpu, link, NOT_RUN, NOT_RUN] for gpu, link in OTHER_GPUS.items()]
    columns = ["GPU", "link", "covered without page walks", "scattered rows"]
    return PageTable(columns, rows, "No GPU has been probed yet.")


TABLES: Final = {"gpus": gpus, "judgement": judgement, "predicted_links": predicted_links}
