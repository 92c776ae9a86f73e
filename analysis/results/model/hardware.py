"""Predictions for links that nobody has measured here: the calibrated chip behind another link,
with its own limits on outstanding reads and its own address translation."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Literal

import numpy as np
from pydantic import Field

from analysis.base import keys
from analysis.base.reading import read_yaml
from analysis.results.model.terms import Parameters, predicted_seconds, work_of
from analysis.results.model.traffic import traffic_of
from analysis.results.store.keys import Keys
from analysis.study.access import Access

FILE: Final = Path(__file__).parent / "hardware.yaml"
MEANING: Final = {
    "raw_rate": "bytes on the wire in one direction",
    "packet_share": "share of them that packets have",
    "efficiency": "share of the packets' rate that is left for them",
    "header_bytes": "header of an answer to a read",
    "framing_bytes": "framing of a packet",
    "completion_bytes": "longest answer to the copy engine",
    "latency": "one turn of a warp: index, round trip, store",
}
OF_THE_MACHINE: Final = ("efficiency", "latency")
"""Parameters that may be left to the calibrated machine."""


class Parameter(Keys):
    """A stated parameter; `value` is NaN where it is the calibrated machine's. `source` is where it
    is printed, empty of an `assumption`."""

    unit: str
    value: float = math.nan
    source: str = ""
    assumption: str = ""


class PublishedRate(Keys):
    """Published rate in B/s of a large copy by SMs (`contiguous`) or by the copy engine. `what`:
    tool and machine; `address`: URL."""

    reads: Literal["contiguous", "copy_engine"]
    rate: float
    what: str
    address: Annotated[str, Field(pattern="^https://")]


class Link(Keys):
    """A link by its parameters, those of MEANING. `pcie` is its generation and width, if it is one
    that a run file can name. `published` are rates to hold the predictions against."""

    name: str
    title: str
    parameters: dict[str, Parameter]
    pcie: dict[Literal["generation", "width"], int] | None = None
    published: list[PublishedRate] = Field(default_factory=list)

    def value(self, name: str) -> float:
        return self.parameters[name].value

    @property
    def packet_rate(self) -> float:
        """B/s on the wire that packets could have at most."""
        return self.value("raw_rate") * self.value("packet_share")


def read_links(path: Path = FILE) -> list[Link]:
    """The links of hardware.yaml; FieldError for a wrong entry."""
    return keys.read(list[Link], read_yaml(path), path.name)


def behind(link: Link, known: Parameters, calibrated: Link) -> Parameters:
    """The parameters of a calibrated machine, whose link is `calibrated`, behind another link. A
    half line costs as many seconds as before; the rate of reads is inverse to their latency."""
    efficiency, latency = (link.value(name) for name in OF_THE_MACHINE)
    if math.isnan(efficiency):
        efficiency = known.link_rate / calibrated.packet_rate
    latency = known.latency if math.isnan(latency) else latency
    rate = link.packet_rate * efficiency
    return replace(
        known,
        link_rate=rate,
        half_line=known.half_line * rate / known.link_rate,
        latency=latency,
        request_rate=known.request_rate * known.latency / latency,
        sm_request_rate=known.sm_request_rate * known.latency / latency,
    )


def predict(access: Access, sms: int, link: Link, parameters: Parameters) -> float:
    """Seconds of `access` over `link`; `parameters` are of a machine behind it."""
    traffic = traffic_of(access)
    completions = traffic.completions
    if access.reads == "copy_engine":
        completions = math.ceil(access.payload_bytes / link.value("completion_bytes"))
    overhead = link.value("header_bytes") + link.value("framing_bytes")
    _, *others = work_of(access, sms)
    work = np.array([[traffic.data_bytes + completions * overhead, *others]])
    return float(predicted_seconds(work, parameters.values())[0])
