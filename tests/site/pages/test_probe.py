"""The page of the probe: its source, an output, and the table of agreement."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.site.facts.probe import SOURCE, Agreement
from analysis.site.pages import probe
from analysis.site.pages.probe import NONE, reach_agreement, reach_example, reach_source
from tests.site.facts.test_probe import GIB, inputs


def test_the_source_is_whole_and_can_be_copied() -> None:
    assert str(reach_source()) == f"``` cuda\n{SOURCE.read_text().rstrip()}\n```"


def test_the_example_is_a_committed_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "OUTPUTS", tmp_path)
    assert str(reach_example()) == NONE
    (tmp_path / "box").mkdir()
    (tmp_path / "box" / "reach.txt").write_text("NVIDIA H200\n")
    earlier = "\n\nAn earlier version of the file wrote it."
    assert str(reach_example()) == f"``` text\nNVIDIA H200\n```{earlier}"
    monkeypatch.setattr(probe, "is_current", lambda path: path.name == "reach.txt")
    assert str(reach_example()) == "``` text\nNVIDIA H200\n```"


def test_each_pool_of_the_probe_is_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = [
        Agreement(4 * GIB, "box", "held", "1", 9000, 9090, is_current=False),
        Agreement(16 * GIB, "box", "held", "1", 9000, 7900),
        Agreement(16 * GIB, "box", "walks", "1/s", 40e6, 42e6),
    ]
    monkeypatch.setattr(probe, "agreements", lambda _: figures)
    text = str(reach_agreement(inputs()))
    assert "reach.cu, pool of 4 GiB" in text
    assert text.endswith("An earlier version of the file ran on H200 with a pool of 4 GiB.")
    for cell in ("+1.0 %", "-12.2 %", "2 of 3 figures", "42.0 million/s (+5.0 %)"):
        assert cell in text


def test_without_outputs_there_is_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "agreements", lambda _: [])
    assert str(reach_agreement(inputs())) == NONE
