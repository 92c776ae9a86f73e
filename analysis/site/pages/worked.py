"""The formula of the link model, with one row of a measured case worked through."""

from __future__ import annotations

from typing import Final

import numpy as np
from markupsafe import Markup

from analysis.base.errors import FieldError
from analysis.base.quantities import digits, quantity, signed_percent, whole
from analysis.results.model import METRIC
from analysis.results.model.terms import TERMS, WORK, Parameters, term_seconds, work_of
from analysis.results.model.traffic import (
    FRAMING_BYTES,
    HEADER_BYTES,
    SECTOR_BYTES,
    Traffic,
    traffic_of,
)
from analysis.site.facts.journeys import machines_by_evidence
from analysis.site.facts.predicting import Chip, chips
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.html import joined, paragraph, table
from analysis.site.pages.model import UNCALIBRATED
from analysis.site.pages.page import macro
from analysis.study import Variant
from analysis.study.access import Access, access_of

PACKET_BYTES: Final = HEADER_BYTES + FRAMING_BYTES
LARGEST: Final = TERMS[:-1]

Step = tuple[str, str, str]
"""The name of a step, how it is computed, and its result."""


@macro()
def worked_row(facts: StudyFacts, variant: str) -> str | Markup:
    """The formula of the link model for one case: from a row's bytes to the predicted time, beside
    the measured one.

    variant: name of a variant that reads rows; the case is the one that pages show
    """
    known = chips(facts.inputs)
    machine = next((one for one in machines_by_evidence(facts) if one in known), None)
    if machine is None:
        return UNCALIBRATED
    of = facts.study.variant(variant)
    access = access_of(of, facts.study.shown_case(of))
    if access is None or not access.row_bytes:
        raise FieldError("variant", "one that reads rows, with a `link`", variant)
    traffic = traffic_of(access)
    chip = known[machine]
    steps = [
        *_bytes_of_a_row(access, traffic, chip.parameters),
        *_times(access, chip),
        *_measured(facts, machine, of, chip),
    ]
    called = facts.inputs.called(machine)
    caption = f"{of.title} on {called}: {whole(access.rows)} rows of {access.row_bytes} B."
    columns = ["step", "computed from", "result"]
    shown = table(columns, steps, caption=caption, numeric=columns[2:])
    return joined("", [paragraph(_formula()), shown])


def _formula() -> Markup:
    terms = Markup(", ").join(Markup("<em>{}</em>").format(name) for name in LARGEST)
    return Markup("<strong>time = <em>{}</em> + the largest of</strong> {}").format(
        TERMS[-1], terms
    )


def _bytes_of_a_row(access: Access, traffic: Traffic, parameters: Parameters) -> list[Step]:
    """The steps from the data of a row to its bytes on the wire: means over all row starts."""
    data, requests, halves = (
        each / access.rows for each in (traffic.data_bytes, traffic.completions, traffic.half_lines)
    )
    wire = data + requests * PACKET_BYTES + halves * parameters.half_line
    packet = f"({HEADER_BYTES} + {FRAMING_BYTES}) B"
    half = f"{digits(halves)} × {digits(parameters.half_line)} B"
    of_all = f"{digits(data)} + {digits(requests * PACKET_BYTES)} + "
    of_all += digits(halves * parameters.half_line)
    return [
        ("data of a row", f"{access.row_bytes} B in sectors of {SECTOR_BYTES} B", _bytes(data)),
        ("requests of a row", "one for each line that a load touches", digits(requests)),
        ("headers and framing", f"{digits(requests)} × {packet}", _bytes(requests * PACKET_BYTES)),
        ("half lines", half, _bytes(halves * parameters.half_line)),
        ("a row on the wire", of_all, _bytes(wire)),
    ]


def _bytes(count: float) -> str:
    return f"{digits(count)} B"


def _times(access: Access, chip: Chip) -> list[Step]:
    """The terms and the predicted time."""
    work = np.array([work_of(access, chip.sms)])
    values = dict(zip(WORK, work[0], strict=True))
    seconds = dict(
        zip(TERMS, term_seconds(work, chip.parameters.values())[0].tolist(), strict=True)
    )
    one = chip.parameters
    wire = values["wire"] + values["half lines"] * one.half_line
    sources = {
        "link": f"{quantity(wire, 'B')} / {quantity(one.link_rate, 'B/s')}",
        "request rate": f"{whole(values['requests'])} / {_per_second(one.request_rate)}",
        "SM request rate": f"{whole(values['requests of an SM'])} /"
        f" {_per_second(one.sm_request_rate)}",
        "in flight": f"{digits(values['turns'])} turns × {quantity(one.latency, 's')}",
        "translation": "page walks, one after the other",
        TERMS[-1]: f"{quantity(one.start_up, 's')} + {quantity(one.index_latency, 's')}"
        if values["indexed"]
        else "the kernel's",
    }
    binding = max(LARGEST, key=seconds.__getitem__)
    found = [
        (name + (", the largest" if name == binding else ""), sources[name], _time(seconds[name]))
        for name in TERMS
    ]
    total = seconds[binding] + seconds[TERMS[-1]]
    of_all = f"{_time(seconds[binding])} + {_time(seconds[TERMS[-1]])}"
    return [*found, ("predicted time", of_all, _time(total))]


def _per_second(rate: float) -> str:
    return quantity(rate, "/s")


def _time(seconds: float) -> str:
    return quantity(seconds, "s") if seconds else "0"


def _measured(facts: StudyFacts, machine: str, variant: Variant, chip: Chip) -> list[Step]:
    """The measured time, and its distance from the predicted one."""
    case = facts.study.shown_case(variant)
    row = facts.figures.find(machine, variant.name, case.id, METRIC)
    if row is None or row.stale:
        return []
    predicted = chip.seconds(variant, case)
    return [
        ("measured time", "device time", _time(row.median)),
        ("measured vs. predicted", "", signed_percent(row.median / predicted - 1)),
    ]
