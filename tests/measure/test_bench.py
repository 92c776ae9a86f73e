"""The command for one variant: its options, and their case."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.base.errors import FieldError, HotpathError
from analysis.measure.bench import case_of, main, options
from analysis.study import Study
from tests import repository
from tests.synthetic import COPY, STUDIES


@pytest.mark.parametrize(
    ("study", "name", "words", "case", "payload"),
    [
        (COPY, "in_flight", "", COPY.headline, None),
        # Any number is accepted and sets the payload.
        (
            COPY,
            "in_flight",
            "--batch 3 --rows 5 --row-bytes 32",
            "batch=3,rows=5,draw=repeated",
            480,
        ),
        # A variant without the headline has the options of its first case.
        (STUDIES["strides"], "engine", "--bytes 4096", "bytes=4096", 4096),
    ],
)
def test_options_set_the_case(
    study: Study, name: str, words: str, case: str, payload: int | None
) -> None:
    variant = study.variant(name)
    found, constants = case_of(study, variant, options(study, variant).parse_args(words.split()))
    assert found.id == case and payload in (None, found.payload_bytes)
    more = {"row_bytes": 32} if "--row-bytes" in words else {}
    assert constants == {**variant.constants, **more}


def test_invalid_options_and_names_are_one_error(capsys: pytest.CaptureFixture[str]) -> None:
    variant = COPY.variant("in_flight")
    for words in (["--batch", "-1"], ["--batch", "x"], ["--draw", "sorted"]):
        with pytest.raises(SystemExit):
            options(COPY, variant).parse_args(words)
        assert words[0] in capsys.readouterr().err
    variant = replace(variant, payload="rows // (batch - 1) - 1")
    for batch, message in (("1", "by zero"), ("2000", "at least 0, got -1")):
        parsed = options(COPY, variant).parse_args(["--batch", batch, "--rows", "5"])
        with pytest.raises(FieldError, match=f"^payload_bytes: expected .*{message}"):
            case_of(COPY, variant, parsed)
    with pytest.raises(HotpathError, match=r"study: expected one of .*h2d_gather.*, got 'gather'"):
        main(["gather"])


def test_every_variant_lists_its_options() -> None:
    for study in repository.STUDIES.values():
        for variant in study.variants:
            assert "--iters" in options(study, variant).format_help()
