"""Random edits of a machine's results."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from analysis.results.store.folders import DESCRIPTION, KINDS
from tests.results.store.changes import PAYLOAD, STUDY, VARIANT, sign

FILES: Final = [*(f"{STUDY}/{VARIANT}{kind}" for kind in KINDS), DESCRIPTION]
WORDS: Final = [
    *("", "0", "-1", "1e999", "nan", "null", "[]", "{}"),
    *("<b>", "{{ 7 }}", "\0", "\u202e", PAYLOAD),
]
MAX_EDITS: Final = 3
_VALUES: Final = {
    ".json": re.compile(rb'(?<=": ")[^"\n]*(?=")'),
    ".csv": re.compile(rb'(?<=[,\n])[^",\n]*(?=[,\n])'),
}
"""Text in files of either kind."""


@dataclass(frozen=True)
class Edit:
    """Replaces `count` bytes of `file` by others, from `place` on, which is a share of its length.

    With a `text`, what is replaced is the next whole value, and the file stays one of its kind.
    With `is_signed`, the checksum of the samples is made to fit.
    """

    file: str
    place: float
    is_signed: bool
    count: int = 0
    by: bytes = b""
    text: str | None = None

    def apply(self, machine: Path) -> None:
        path = machine / self.file
        content = path.read_bytes()
        start = int(self.place * len(content))
        end, by = start + self.count, self.by
        if self.text is not None and (value := _VALUES[path.suffix].search(content, start)):
            (start, end), by = value.span(), _written(self.text, path.suffix)
        path.write_bytes(content[:start] + by + content[end:])
        if self.is_signed:
            with suppress(ValueError, AttributeError):
                sign(machine)


def _written(text: str, suffix: str) -> bytes:
    """`text` as a value in a file of this kind."""
    if suffix == ".json":
        return json.dumps(text)[1:-1].encode()
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="").writerow([text])
    return buffer.getvalue().encode(errors="replace")


_TEXTS: Final = st.sampled_from(WORDS) | st.text(max_size=20) | st.floats().map(str)
_PLACED: Final = {
    "file": st.sampled_from(FILES),
    "place": st.integers(0, 999).map(lambda number: number / 1000),  # floats are often 0 or 1
}
_BYTES: Final = st.builds(
    Edit,
    **_PLACED,
    count=st.integers(0, 40),
    by=_TEXTS.map(lambda text: text.encode(errors="replace")) | st.binary(max_size=9),
    is_signed=st.booleans(),
)
_VALUE: Final = st.builds(Edit, **_PLACED, text=_TEXTS | st.just(PAYLOAD), is_signed=st.just(True))
EDITS: Final = _VALUE.map(lambda edit: [edit]) | st.lists(
    _BYTES | _VALUE, min_size=1, max_size=MAX_EDITS
)


def apply(machine: Path, edits: Sequence[Edit]) -> None:
    for edit in edits:
        edit.apply(machine)


def drawn(count: int) -> list[list[Edit]]:
    """`count` reproducible EDITS."""
    found: list[list[Edit]] = []

    @settings(
        database=None,
        derandomize=True,
        max_examples=count,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(EDITS)
    def draw(edits: list[Edit]) -> None:
        found.append(edits)

    draw()
    return found
