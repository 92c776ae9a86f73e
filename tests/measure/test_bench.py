"""The command for one variant: its options, and their case."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.base.errors import FieldError, HotpathError
from analysis.measure.bench import case_of, main, options
from analysis.study import Study
from tests import repository
from tests.synthetic import COPY, STUDIES

STRIDES = STUDIES["strides"]


def test_the_defaults_are_the_headline() -> None:
    variant = COPY.variant("in_flight")
    case, constants = case_of(COPY, variant, options(COPY, variant).parse_args([]))
    assert case.id == COPY.headline
    assert constants == variant.constants


def test_any_number_is_accepted_and_sets_the_payload() -> None:
    variant = COPY.variant("in_flight")
    words = ["--batch", "3", "--rows", "5", "--row-bytes", "32"]
    case, constants = case_of(COPY, variant, options(COPY, variant).parse_args(words))
    assert case.id == "batch=3,rows=5,draw=repeated"
    assert (case.payload_bytes, constants["row_bytes"]) == (3 * 5 * 32, 32)


def test_a_variant_without_the_headline_has_options_of_its_own() -> None:
    variant = STRIDES.variant("engine")
    parsed = options(STRIDES, variant).parse_args(["--bytes", "4096"])
    case, _ = case_of(STRIDES, variant, parsed)
    assert (case.id, case.payload_bytes) == ("bytes=4096", 4096)


@pytest.mark.parametrize("words", [["--batch", "-1"], ["--batch", "x"], ["--draw", "sorted"]])
def test_invalid_case_is_rejected(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        options(COPY, COPY.variant("in_flight")).parse_args(words)
    assert words[0] in capsys.readouterr().err


def test_invalid_payload_is_one_error() -> None:
    variant = replace(COPY.variant("in_flight"), payload="rows // (batch - 1) - 1")
    for batch, message in (("1", "by zero"), ("2000", "at least 0, got -1")):
        parsed = options(COPY, variant).parse_args(["--batch", batch, "--rows", "5"])
        with pytest.raises(FieldError, match=f"^payload_bytes: expected .*{message}"):
            case_of(COPY, variant, parsed)


def test_an_unknown_study_is_one_error() -> None:
    with pytest.raises(HotpathError, match=r"study: expected one of .*h2d_gather.*, got 'gather'"):
        main(["gather"])


@pytest.mark.parametrize("study", repository.STUDIES.values(), ids=lambda study: study.name)
def test_every_variant_lists_its_options(study: Study) -> None:
    for variant in study.variants:
        assert "--iters" in options(study, variant).format_help()
