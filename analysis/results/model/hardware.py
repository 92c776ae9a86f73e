"""Predictions for links that nobody has measured here: the calibrated chip behind another link.

Only what belongs to the link is replaced. The chip's limits, how many reads it has outstanding
and how it translates addresses, are those of the machine that was calibrated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from analysis.base.errors import FieldError
from analysis.base.reading import read_yaml
from analysis.results.model.terms import TERMS, Parameters, term_seconds, work_of
from analysis.results.model.traffic import traffic_of
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
COPIES: Final = ("contiguous", "copy_engine")
"""How a large copy reads: by SMs or by the copy engine."""
OF_THE_MACHINE: Final = ("efficiency", "latency")
"""Parameters that may be left to the calibrated machine."""


@dataclass(frozen=True)
class Parameter:
    """A stated parameter; `value` is NaN where it is the calibrated machine's. `source` is where it
    is printed, empty of an `assumption`."""

    unit: str
    value: float = math.nan
    source: str = ""
    assumption: str = ""


@dataclass(frozen=True)
class PublishedRate:
    """Published rate in B/s of a large copy. `reads`: one of COPIES; `what`: tool and machine;
    `address`: URL."""

    reads: str
    rate: float
    what: str
    address: str


@dataclass(frozen=True)
class Link:
    """A link by its parameters, those of MEANING. `pcie` is its generation and width, if it is one
    that machine.json can name. `published` are rates to hold the predictions against."""

    name: str
    title: str
    parameters: Mapping[str, Parameter]
    pcie: tuple[int, int] | None = None
    published: tuple[PublishedRate, ...] = ()

    def value(self, name: str) -> float:
        return self.parameters[name].value

    @property
    def packet_rate(self) -> float:
        """B/s on the wire that packets could have at most."""
        return self.value("raw_rate") * self.value("packet_share")


@dataclass(frozen=True)
class Prediction:
    """Seconds of one operation, the term that limits it, and the seconds that the link alone would
    take."""

    seconds: float
    binding: str
    link_seconds: float


def read_links(path: Path = FILE) -> list[Link]:
    """The links of hardware.yaml. FieldError names the first parameter that is missing, not known,
    or neither printed nor assumed."""
    return [_link(entry, path.name) for entry in read_yaml(path)]


def _link(entry: Mapping[str, Any], where: str) -> Link:
    here = f"{where}: {entry['name']}"
    if set(entry["parameters"]) != set(MEANING):
        raise FieldError(here, f"the parameters {list(MEANING)}", sorted(entry["parameters"]))
    parameters = {name: Parameter(**given) for name, given in entry["parameters"].items()}
    for name, one in parameters.items():
        if bool(one.source) == bool(one.assumption):
            raise FieldError(
                f"{here}.{name}", "a source or an assumption", entry["parameters"][name]
            )
        if math.isnan(one.value) and name not in OF_THE_MACHINE:
            raise FieldError(f"{here}.{name}.value", "a number", None)
    pcie = entry.get("pcie")
    key = (pcie["generation"], pcie["width"]) if pcie else None
    published = tuple(PublishedRate(**given) for given in entry.get("published", ()))
    for rate in published:
        if rate.reads not in COPIES:
            raise FieldError(f"{here}.published.reads", f"one of {list(COPIES)}", rate.reads)
    return Link(entry["name"], entry["title"], parameters, key, published)


def behind(link: Link, known: Parameters, calibrated: Link) -> Parameters:
    """The parameters of a calibrated machine, whose link is `calibrated`, behind another link.

    A half line of host memory costs as many seconds as before. As many reads are outstanding, so
    their rate goes with the latency.
    """
    efficiency = link.value("efficiency")
    if math.isnan(efficiency):
        efficiency = known.link_rate / calibrated.packet_rate
    latency = link.value("latency")
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


def predict(access: Access, sms: int, link: Link, parameters: Parameters) -> Prediction:
    """`access` over `link`; `parameters` are of a machine behind it."""
    traffic = traffic_of(access)
    completions = traffic.completions
    if access.reads == "copy_engine":
        completions = math.ceil(access.payload_bytes / link.value("completion_bytes"))
    overhead = link.value("header_bytes") + link.value("framing_bytes")
    _, *others = work_of(access, sms)
    work = np.array([[traffic.data_bytes + completions * overhead, *others]])
    (terms,) = term_seconds(work, parameters.values())
    limits, start = terms[:-1], float(terms[-1])
    binding = int(limits.argmax())
    return Prediction(
        float(limits[binding]) + start, TERMS[binding], float(limits[TERMS.index("link")]) + start
    )
