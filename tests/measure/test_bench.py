"""The command for one variant: its options, their case, and what it prints."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.base.errors import FieldError, HotpathError
from analysis.measure import bench
from analysis.measure.bench import case_of, main, options
from analysis.measure.places import Place
from tests.measure.studies import write_study
from tests.synthetic import COPY


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


def test_every_metric_is_printed_or_the_first_fault(
    tmp_path: Path,
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    study = write_study(tmp_path / "fill", {"name": "one"}, {"name": "wrong"}, {"name": "refuses"})
    monkeypatch.setattr(bench, "discover", lambda: {"fill": study})
    monkeypatch.setattr(bench, "find_places", lambda *_: {"fill": place})
    monkeypatch.setattr(bench, "use_cpus", lambda cpus: None)
    main(["fill", "one", "--n", "2"])
    printed = capsys.readouterr().out
    assert "one n=2\npayload: 16 B\noutput: every byte verified\n" in printed
    assert re.search(r"host time: .*s, throughput .* GB/s = .* GiB/s\nbytes: 16.0 B\n", printed)
    main(["fill", "one", "--single-launch"])
    for variant, message in (("wrong", "wrong output: byte 15: ex"), ("refuses", "skipped: too l")):
        with pytest.raises(HotpathError, match=message):
            main(["fill", variant, "--n", "2"])
