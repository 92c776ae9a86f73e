"""A line that is redrawn, and plain lines."""

from __future__ import annotations

import io

import pytest

from analysis.measure.progress import Line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_terminal_shows_the_last_line_drawn_and_keeps_messages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "11")
    stream = Terminal()
    line = Line(stream)
    line.draw("one of two")
    line.draw("two of two things")
    line.say("done")
    line.say("end")
    assert stream.getvalue() == "\r\x1b[Kone of two\r\x1b[Ktwo of two\r\x1b[Kdone\nend\n"


@pytest.mark.parametrize(("stream", "term"), [(io.StringIO(), "xterm"), (Terminal(), "dumb")])
def test_without_a_terminal_only_messages_are_written(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, term: str
) -> None:
    monkeypatch.setenv("TERM", term)
    line = Line(stream)
    line.draw("one of two")
    line.say("done")
    assert stream.getvalue() == "done\n"
