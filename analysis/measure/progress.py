"""How far a run is: one live line on a terminal, and now and then a line that stays."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from statistics import fmean
from typing import TextIO

from analysis.measure.forecast import Forecast
from analysis.measure.telemetry import latest

_CLEAR = "\r\x1b[K"
PERIOD_S = 1.0
"""Period of the live line. Without a terminal, nothing runs beside a measurement."""
SILENCE_S = 30.0
"""Minimum time between two printed rounds; a study's first and last are always printed."""
BUSY_SHARE = 0.05
"""Minimum CPU share of other processes that is reported."""


@dataclass(frozen=True)
class Signs:
    """Where a round's signs are read: the file that names its cell, its telemetry; the share of the
    CPU that others used before it, and the processes that others have on the GPU."""

    cell: Path
    telemetry: Path
    busy_share: float
    gpu_users: Sequence[int]

    def read(self) -> list[str]:
        """The cell, then what `machine` says."""
        cell = self.cell.read_text().partition(":")[0] if self.cell.exists() else ""
        return [*filter(None, [cell]), *self.machine()]

    def machine(self) -> Iterator[str]:
        """The GPU's temperature, whether its clocks are lowered, and who else loads the machine."""
        if row := latest(self.telemetry):
            if row["temperature_c"]:
                yield f"GPU {row['temperature_c']} °C"
            if row["throttle"]:
                yield f"clocks lowered: {row['throttle']}"
        if self.gpu_users:
            yield "others use the GPU"
        if self.busy_share >= BUSY_SHARE:
            yield f"others use {self.busy_share * 100:.0f} % of the CPU"


class Line:
    """The last line of a stream.

    On a terminal it shows what was drawn last; elsewhere drawing does nothing.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.live = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._drawn = False

    def draw(self, text: str) -> None:
        """Show `text` in place of what was drawn before, cut to the width of the terminal."""
        if self.live:
            width = shutil.get_terminal_size().columns - 1
            self._write(f"{_CLEAR}{text[:width]}")
            self._drawn = True

    def say(self, text: str) -> None:
        """Write a line that stays."""
        self.clear()
        self._write(f"{text}\n")

    def clear(self) -> None:
        """Make room for others that write to the stream."""
        if self._drawn:
            self._write(_CLEAR)
            self._drawn = False

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class Progress:
    """Reports the progress of a study with `rounds` rounds; create it when the first begins."""

    def __init__(self, line: Line, study: str, rounds: int, forecast: Forecast) -> None:
        self._line = line
        self._study = study
        self._rounds = rounds
        self._forecast = forecast
        self._took: list[float] = []
        self._began = time.monotonic()
        self._reported = self._began - SILENCE_S

    def watch(
        self, process: BaseProcess, limit_s: float, number: int, left: int, signs: Signs
    ) -> None:
        """Wait at most `limit_s` for the process of round `number`, one of `left` to be done."""
        until = time.monotonic() + limit_s
        while self._line.live and process.is_alive() and time.monotonic() < until:
            what = [self._study, *self._of(), f"round {number + 1} of {self._rounds}"]
            self._line.draw(", ".join([*what, self._time(left), *signs.read()]))
            process.join(min(PERIOD_S, max(0.0, until - time.monotonic())))
        process.join(max(0.0, until - time.monotonic()))
        self._line.clear()

    def round_done(self, number: int, left: int, signs: Signs) -> None:
        """Report, at most every SILENCE_S, that round `number` is done and `left` remain."""
        now = time.monotonic()
        self._took.append(now - self._began)
        self._began = now
        if left and now - self._reported < SILENCE_S:
            return
        self._reported = now
        done = f"round {number + 1} of {self._rounds} done"
        parts = [done, *self._of(), self._time(left), *signs.machine()]
        self._line.say(f"{self._study}: {', '.join(parts)}")

    def left_s(self, rounds: int) -> float:
        """Seconds until all is measured; `rounds` of this study are left, the current one too."""
        if rounds == 0:
            return self._forecast.later_s
        each = fmean(self._took) if self._took else self._forecast.round_s
        current = max(0.0, each - (time.monotonic() - self._began))
        return current + (rounds - 1) * each + self._forecast.later_s

    def _of(self) -> list[str]:
        place, places = self._forecast.place, self._forecast.places
        return [f"study {place} of {places}"] if places > 1 else []

    def _time(self, rounds: int) -> str:
        return f"{in_words(self.left_s(rounds))} left"


def in_words(seconds: float) -> str:
    """`1 min 20 s`, to 10 s, and below a minute to 1 s."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds, -1), 60)
    return f"{minutes:.0f} min {rest:.0f} s" if minutes < 10 and rest else f"{minutes:.0f} min"
