"""A line that is drawn anew where somebody looks at it, and plain lines where nobody does."""

from __future__ import annotations

import os
import shutil
from typing import TextIO

_CLEAR = "\r\x1b[K"


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
