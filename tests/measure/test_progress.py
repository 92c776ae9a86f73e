"""Progress while a study is measured."""

from __future__ import annotations

import io
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import cast

import pytest

from analysis.measure import progress
from analysis.measure.forecast import Forecast
from analysis.measure.progress import SILENCE_S, Line, Progress, Signs, in_words
from analysis.measure.telemetry import COLUMNS, latest


class Clock:
    """A clock that advances only in waits."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


class Round:
    """A process that lives for `seconds` of a clock."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._end = clock.now + seconds

    def is_alive(self) -> bool:
        return self._clock.now < self._end

    def join(self, timeout: float) -> None:
        self._clock.now = max(self._clock.now, min(self._end, self._clock.now + timeout))


class Drawn(Line):
    """A line that keeps everything."""

    def __init__(self, live: bool) -> None:
        super().__init__(io.StringIO())
        self.live = live
        self.drawn: list[str] = []
        self.said: list[str] = []

    def draw(self, text: str) -> None:
        self.drawn.append(text)

    def say(self, text: str) -> None:
        self.said.append(text)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


@pytest.fixture
def signs(tmp_path: Path) -> Signs:
    (tmp_path / "cell").write_text("cell 120 of 300: one n=1")
    row = dict.fromkeys(COLUMNS, "0") | {"temperature_c": "54", "throttle": "sw_power_cap"}
    (tmp_path / "telemetry").write_text(f"{','.join(row.values())}\n2026-01-01T0")
    return Signs(tmp_path / "cell", tmp_path / "telemetry", 0.12, [])


def measure(shown: Progress, clock: Clock, signs: Signs, seconds: list[float]) -> None:
    for number, took in enumerate(seconds):
        left = len(seconds) - number
        shown.watch(cast(BaseProcess, Round(clock, took)), 1000, number, left, signs)
        shown.round_done(number, left - 1, signs)


def test_a_live_line_has_all_that_one_wants_to_know(clock: Clock, signs: Signs) -> None:
    line = Drawn(live=True)
    shown = Progress(line, "gather", 2, Forecast(90.0, later_s=600.0, place=3, places=9))
    measure(shown, clock, signs, [2.0, 2.0])
    assert line.drawn[0] == (
        "gather, study 3 of 9, round 1 of 2, 13 min left, cell 120 of 300, GPU 54 °C, "
        "clocks lowered: sw_power_cap, others use 12 % of the CPU"
    )
    assert len(line.drawn) == 4


def test_without_a_terminal_each_round_is_one_line(clock: Clock, signs: Signs) -> None:
    line = Drawn(live=False)
    measure(Progress(line, "gather", 2, Forecast(90.0)), clock, signs, [100.0, 80.0])
    assert line.drawn == []
    seen = "GPU 54 °C, clocks lowered: sw_power_cap, others use 12 % of the CPU"
    assert line.said == [
        f"gather: round 1 of 2 done, 1 min 40 s left, {seen}",
        f"gather: round 2 of 2 done, 0 s left, {seen}",
    ]


def test_short_rounds_report_the_first_the_last_and_after_a_silence(
    clock: Clock, signs: Signs
) -> None:
    line = Drawn(live=False)
    measure(Progress(line, "gather", 9, Forecast(9.0)), clock, signs, [SILENCE_S / 4] * 9)
    rounds = [said.partition(" of")[0].removeprefix("gather: round ") for said in line.said]
    assert rounds == ["1", "5", "9"]


def test_a_round_is_waited_for_no_longer_than_its_limit(clock: Clock, signs: Signs) -> None:
    for live in (True, False):
        began = clock.now
        shown = Progress(Drawn(live), "gather", 1, Forecast(1.0))
        shown.watch(cast(BaseProcess, Round(clock, 1e6)), 7.5, 0, 1, signs)
        assert clock.now - began == 7.5


def test_the_time_left_is_right_within_a_quarter_after_a_tenth_of_a_second_run(
    clock: Clock, signs: Signs
) -> None:
    took = [110.0, 130.0, 90.0, 120.0, 100.0]
    shown = Progress(Drawn(live=False), "gather", 5, Forecast(round_s=sum(took) / 5 * 1.15))
    clock.now += sum(took) / 10
    assert shown.left_s(5) == pytest.approx(0.9 * sum(took), rel=0.25)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "0 s"),
        (59.4, "59 s"),
        (60, "1 min"),
        (204, "3 min 20 s"),
        (599, "10 min"),
        (8000, "133 min"),
    ],
)
def test_durations_are_worded_at_a_suitable_precision(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


def test_nothing_is_read_from_telemetry_before_its_first_row(tmp_path: Path) -> None:
    assert latest(tmp_path / "none") is None
    (tmp_path / "begun").write_text("2026-01-01T0")
    assert latest(tmp_path / "begun") is None
