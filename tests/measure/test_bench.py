"""The command for one variant: its options, and their case."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.base.errors import FieldError, HotpathError
from analysis.measure.bench import case_of, main, options
from tests import repository
from tests.synthetic import COPY, STUDIES


@pytest.mark.parametrize(
    ("study", "name", "words", "case", "payload"),
    [
        ("copy", "in_flight", "", COPY.headline, None),
        (
            *("copy", "in_flight", "--batch 3 --rows 5"),
            *("batch=3,rows=5,draw=repeated", 15 * COPY.constants["row_bytes"]),
        ),
        # A variant without the headline has the options of its first case.
        ("strides", "engine", "--bytes 4096", "bytes=4096", None),
    ],
)
def test_options_set_the_case(
    study: str, name: str, words: str, case: str, payload: int | None
) -> None:
    variant = STUDIES[study].variant(name)
    parsed = options(STUDIES[study], variant).parse_args(words.split())
    found = case_of(variant, parsed)
    assert found.id == case and payload in (None, found.payload_bytes)


def test_invalid_options_and_names_are_one_error(capsys: pytest.CaptureFixture[str]) -> None:
    variant = replace(COPY.variant("in_flight"), payload="rows // (batch - 1) - 1")
    with pytest.raises(SystemExit):
        options(COPY, variant).parse_args(["--batch", "-1"])
    assert "--batch" in capsys.readouterr().err
    for batch, message in (("1", "by zero"), ("2000", "at least 0, got -1")):
        parsed = options(COPY, variant).parse_args(["--batch", batch, "--rows", "5"])
        with pytest.raises(FieldError, match=f"^payload_bytes: expected .*{message}"):
            case_of(variant, parsed)
    with pytest.raises(HotpathError, match=r"study: expected one of .*h2d_gather.*, got 'gather'"):
        main(["gather"])
    for study in repository.STUDIES.values():
        assert all("--iters" in options(study, each).format_help() for each in study.variants)
