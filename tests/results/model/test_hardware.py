"""Other links: their parameters, and predictions for the calibrated chip behind them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from analysis.base.errors import FieldError
from analysis.base.reading import read_yaml
from analysis.results.model.hardware import (
    FILE,
    Link,
    Parameter,
    behind,
    predict,
    read_links,
)
from analysis.results.model.terms import predicted_seconds, work_of
from analysis.study.access import Access
from tests.linked import MIB, SMS, TRUE, rows

LINKS = {link.name: link for link in read_links()}
OWN = LINKS["pcie5_x16"]
COPY = Access("copy_engine", 64 * MIB)


def rate(access: Access, link: Link) -> float:
    return access.payload_bytes / predict(access, SMS, link, behind(link, TRUE, OWN))


@pytest.mark.parametrize("access", [rows(656), rows(512), COPY])
def test_prediction_for_the_calibrated_link_is_the_model(access: Access) -> None:
    known = behind(OWN, TRUE, OWN)
    expected = predicted_seconds(np.array([work_of(access, SMS)]), TRUE.values())[0]
    assert predict(access, SMS, OWN, known) == pytest.approx(expected)


def test_a_link_of_another_rate_changes_what_the_link_binds() -> None:
    for access in (rows(656), COPY):
        assert rate(access, LINKS["pcie4_x16"]) == pytest.approx(rate(access, OWN) / 2, rel=0.05)
    fast = LINKS["nvlink_c2c"]  # the chip's requests limit reads by SMs
    assert rate(rows(656), fast) < rate(COPY, fast) / 2
    assert rate(COPY, fast) == pytest.approx(375e9, rel=0.02)


def test_a_shorter_round_trip_is_a_higher_rate_of_requests() -> None:
    latency = Parameter(unit="s", value=TRUE.latency / 2, source="a source")
    near = OWN.model_copy(update={"parameters": {**OWN.parameters, "latency": latency}})
    known = behind(near, TRUE, OWN)
    assert known.request_rate == 2 * TRUE.request_rate
    assert known.sm_request_rate == 2 * TRUE.sm_request_rate


@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
def test_half_a_host_line_costs_as_long_behind_any_link(link: Link) -> None:
    known = behind(link, TRUE, OWN)
    assert known.half_line / known.link_rate == pytest.approx(TRUE.half_line / TRUE.link_rate)


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        ("latency", {"source": "", "assumption": ""}, "a source or an assumption of latency"),
        ("raw_rate", {"value": None}, "a value of raw_rate, got None"),
        ("speed", {}, r"the parameters \['raw_rate', .*'speed'\]"),
    ],
)
def test_a_parameter_is_known_and_printed_or_assumed(
    tmp_path: Path, name: str, changes: dict[str, Any], expected: str
) -> None:
    links = read_yaml(FILE)
    parameters = links[0]["parameters"]
    changed = parameters.get(name, parameters["raw_rate"]) | changes
    parameters[name] = {key: value for key, value in changed.items() if value is not None}
    (tmp_path / "hardware.yaml").write_text(yaml.safe_dump(links, sort_keys=False))
    with pytest.raises(FieldError, match=rf"^hardware\.yaml: .*: expected {expected}"):
        read_links(tmp_path / "hardware.yaml")
