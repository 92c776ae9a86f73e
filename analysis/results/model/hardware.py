"""Predicted rates of large copies over links that nobody has measured here: the calibrated chip
behind another link."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Literal

import numpy as np
from pydantic import Field

from analysis.base import keys
from analysis.base.reading import read_yaml
from analysis.results.model.terms import Parameters, predicted_seconds, work_of
from analysis.results.model.traffic import FRAMING_BYTES, HEADER_BYTES, traffic_of
from analysis.results.store.keys import Keys
from analysis.study.access import Access

FILE: Final = Path(__file__).parent / "hardware.yaml"


class PublishedRate(Keys):
    """Published rate in B/s of a large copy by SMs (`contiguous`) or by the copy engine. `what`:
    tool and machine; `address`: URL."""

    reads: Literal["contiguous", "copy_engine"]
    rate: float
    what: str
    address: Annotated[str, Field(pattern="^https://")]


class Link(Keys):
    """A link. `raw_rate` is that of one direction, in B/s; packets have the share `packet_share` of
    it and use the share `efficiency` of that, NaN for that of the calibrated link. `pcie` is its
    generation and width, if it is one that a run file can name. `published` are rates to hold the
    predictions against."""

    title: str
    raw_rate: float
    packet_share: float
    efficiency: float = math.nan
    header_bytes: int = HEADER_BYTES
    framing_bytes: int = FRAMING_BYTES
    pcie: dict[Literal["generation", "width"], int] | None = None
    published: list[PublishedRate]

    @property
    def packet_rate(self) -> float:
        """B/s on the wire that packets could have at most."""
        return self.raw_rate * self.packet_share


def read_links() -> list[Link]:
    """The links of hardware.yaml; FieldError for a wrong entry."""
    return keys.read(list[Link], read_yaml(FILE), FILE.name)


def predict(copy: Access, sms: int, link: Link, known: Parameters, calibrated_link: Link) -> float:
    """Seconds of a large copy over `link`, by a chip with the parameters `known` of its calibration
    behind another link."""
    efficiency = link.efficiency
    if math.isnan(efficiency):
        efficiency = known.link_rate / calibrated_link.packet_rate
    traffic, (_, *others) = traffic_of(copy), work_of(copy, sms)
    overhead = traffic.completions * (link.header_bytes + link.framing_bytes)
    work = np.array([[traffic.data_bytes + overhead, *others]])
    parameters = replace(known, link_rate=link.packet_rate * efficiency)
    return float(predicted_seconds(work, parameters.values())[0])
