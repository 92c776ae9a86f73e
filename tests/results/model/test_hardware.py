"""Other links: their parameters, and predictions for the calibrated chip behind them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from analysis.base.errors import FieldError
from analysis.results.model.hardware import FILE, Link, Parameter, behind, predict, read_links
from analysis.results.model.terms import predicted_seconds, work_of
from analysis.study.access import Access
from tests.linked import MIB, SMS, TRUE, rows

LINKS = {link.name: link for link in read_links()}
OWN = LINKS["pcie5_x16"]
COPY = Access("copy_engine", 64 * MIB)


def rate(access: Access, link: Link) -> float:
    prediction = predict(access, SMS, link, behind(link, TRUE, OWN))
    return access.payload_bytes / prediction.seconds


@pytest.mark.parametrize("access", [rows(656), rows(512), COPY])
def test_prediction_for_the_calibrated_link_is_the_model(access: Access) -> None:
    known = behind(OWN, TRUE, OWN)
    expected = predicted_seconds(np.array([work_of(access, SMS)]), TRUE.values())[0]
    assert predict(access, SMS, OWN, known).seconds == pytest.approx(expected)


def test_half_the_link_rate_halves_link_bound_rates() -> None:
    for access in (rows(656), COPY):
        fast, slow = rate(access, OWN), rate(access, LINKS["pcie4_x16"])
        assert slow == pytest.approx(fast / 2, rel=0.05)


def test_fast_link_leaves_sms_request_bound_and_copy_engine_link_bound() -> None:
    link = LINKS["nvlink_c2c"]
    known = behind(link, TRUE, OWN)
    read = predict(rows(656), SMS, link, known)
    assert read.binding == "request rate" and read.link_seconds < read.seconds / 2
    assert predict(COPY, SMS, link, known).binding == "link"
    assert rate(COPY, link) == pytest.approx(375e9, rel=0.02)


def test_a_shorter_round_trip_is_a_higher_rate_of_requests() -> None:
    near = replace(
        OWN, parameters={**OWN.parameters, "latency": Parameter("s", TRUE.latency / 2, "a source")}
    )
    known = behind(near, TRUE, OWN)
    assert known.request_rate == 2 * TRUE.request_rate
    assert known.sm_request_rate == 2 * TRUE.sm_request_rate


@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
def test_half_a_host_line_costs_as_long_behind_any_link(link: Link) -> None:
    known = behind(link, TRUE, OWN)
    assert known.half_line / known.link_rate == pytest.approx(TRUE.half_line / TRUE.link_rate)


def test_link_bound_time_is_that_of_the_link_alone() -> None:
    copy = predict(COPY, SMS, OWN, behind(OWN, TRUE, OWN))
    assert copy.binding == "link" and copy.link_seconds == copy.seconds


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": "", "assumption": ""}, "pcie4_x16.raw_rate: expected a source or an assum"),
        ({"assumption": "as well"}, "pcie4_x16.raw_rate: expected a source or an assumption"),
        ({"value": float("nan")}, "pcie4_x16.raw_rate.value: expected a number"),
        (None, "pcie4_x16: expected the parameters"),
    ],
)
def test_a_parameter_is_printed_or_assumed(
    tmp_path: Path, change: dict[str, Any] | None, message: str
) -> None:
    entries = yaml.safe_load(FILE.read_text())
    if change is None:
        del entries[0]["parameters"]["raw_rate"]
    else:
        entries[0]["parameters"]["raw_rate"] = {**entries[0]["parameters"]["raw_rate"], **change}
    path = tmp_path / "hardware.yaml"
    path.write_text(yaml.safe_dump(entries))
    with pytest.raises(FieldError, match=message):
        read_links(path)


def test_a_published_rate_is_of_a_known_kind_of_copy(tmp_path: Path) -> None:
    path = tmp_path / "hardware.yaml"
    text = FILE.read_text()
    path.write_text(text.replace("reads: contiguous", "reads: sideways", 1))
    with pytest.raises(FieldError, match=r"pcie4_x16\.published\.reads: expected one of"):
        read_links(path)
    assert all(
        one.address.startswith("https://") for link in read_links() for one in link.published
    )
