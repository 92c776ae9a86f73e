"""One measurement at a time: a second one reports that it waits, or fails."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from analysis import ROOT
from analysis.base.errors import HotpathError
from analysis.measure.machine_lock import FOLDER_VARIABLE, whole_machine
from tests.waiting import wait_for


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))


def test_second_measurement_is_refused_if_configured() -> None:
    with (
        whole_machine("refuse", "measuring one"),
        pytest.raises(HotpathError, match=rf"config: busy: .* in {ROOT}: measuring one, since 2"),
        whole_machine("refuse", "measuring another"),
    ):
        pass


def test_a_second_measurement_waits_with_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    entered = threading.Event()
    output = ""

    def second() -> None:
        with whole_machine("wait", "measuring another"):
            entered.set()

    def has_message() -> bool:
        nonlocal output
        output += capsys.readouterr().out
        return "waiting until this machine is free" in output

    waiting = threading.Thread(target=second)
    with whole_machine("wait", "measuring one"):
        waiting.start()
        wait_for(has_message)
        assert not entered.is_set()
    waiting.join()
    assert entered.is_set()
    assert "measuring one" in output
