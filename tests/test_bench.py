"""The command that runs one variant by itself: its options, and the case they make."""

from __future__ import annotations

import pytest

from analysis.bench import case_of, main, options
from analysis.errors import HotpathError
from analysis.study import discover

GATHER = discover()["h2d_gather"]
CALIBRATION = discover()["link_calibration"]


def test_the_defaults_are_the_headline() -> None:
    variant = GATHER.variant("v3_loads_first")
    case, constants = case_of(GATHER, variant, options(GATHER, variant).parse_args([]))
    assert case.id == GATHER.headline
    assert constants == variant.constants


def test_any_number_can_be_asked_for_and_the_payload_follows() -> None:
    variant = GATHER.variant("v3_loads_first")
    words = ["--bs", "3", "--topk", "5", "--token-bytes", "32"]
    case, constants = case_of(GATHER, variant, options(GATHER, variant).parse_args(words))
    assert case.id == "bs=3,topk=5,draw=with_replacement"
    assert (case.payload_bytes, constants["token_bytes"]) == (3 * 5 * 32, 32)


def test_a_variant_without_the_headline_has_options_of_its_own() -> None:
    variant = CALIBRATION.variant("sm_contiguous")
    parsed = options(CALIBRATION, variant).parse_args(["--bytes", "4096"])
    case, _ = case_of(CALIBRATION, variant, parsed)
    assert (case.id, case.payload_bytes) == ("bytes=4096", 4096)


@pytest.mark.parametrize("words", [["--bs", "-1"], ["--bs", "x"], ["--draw", "sorted"]])
def test_what_no_case_can_be_is_refused(words: list[str], capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        options(GATHER, GATHER.variant("v3_loads_first")).parse_args(words)
    assert words[0] in capsys.readouterr().err


def test_an_unknown_study_is_one_error() -> None:
    with pytest.raises(HotpathError, match=r"study: expected one of .*h2d_gather.*, got 'gather'"):
        main(["gather"])
