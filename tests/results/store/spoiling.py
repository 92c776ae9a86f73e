"""Mutations of committed results: every key and column, in every way."""

from __future__ import annotations

import csv
import io
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from analysis import ROOT
from analysis.results.store.folders import DESCRIPTION, KINDS
from analysis.results.store.samples import checksum
from tests.editing import edit_json

COMMITTED: Final = ROOT / "results"
VALUES: Final[Mapping[str, object]] = {
    "a word": "much",
    "a number": 7.5,
    "a list": [],
    "an object": {},
    "null": None,
    "NaN": float("nan"),
    "negative": -1,
    "huge": 1e300,
    "zero": 0,
    "empty": "",
    "NUL": "\0",
    "markup": "<script>hit(1)</script>",
}
"""Values that replace the value of a key."""
CELLS: Final[Mapping[str, str]] = {
    "a word": "much",
    "NaN": "nan",
    "negative": "-1",
    "huge": "1e300",
    "zero": "0",
    "large": "1e17",
    "small": "1e-14",
    "empty": "",
    "NUL": "\0",
    "markup": "<script>hit(1)</script>",
}
"""Texts that replace a cell."""
IN_JSON: Final = (*VALUES, "missing", "truncated", "twice")
IN_CSV: Final = (*CELLS, "missing", "truncated", "row twice", "column twice")
NAMED: Final = {"bounds", "libraries", "cpu_caches", "captures"}
"""Keys of objects whose keys are names."""

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Spoiled:
    """A file of results by its path, the place in it, and the kind of mutation."""

    file: str
    place: KeyPath
    kind: str

    @property
    def machine(self) -> str:
        return self.file.partition("/")[0]

    @property
    def folder(self) -> str:
        """The folder that a refusal leaves out: of a study on a machine, or of the machine."""
        return self.file.rpartition("/")[0]

    @property
    def subject(self) -> str:
        """The variant or description that the file belongs to."""
        return self.file.partition(".")[0]

    @property
    def is_description(self) -> bool:
        return self.file.endswith(DESCRIPTION)

    def apply(self, root: Path) -> None:
        """Change the file below `root`; the checksum of changed samples fits."""
        path = root / self.file
        if path.suffix == ".json":
            path.write_text(self._json(path.read_text()))
            return
        path.write_text(self._csv(path.read_text()), newline="")
        if path.name.count(".") == 1:
            digest = checksum(path)
            edit_json(path.with_suffix(".json"), lambda d: d.update(samples_sha256=digest))

    def _json(self, text: str) -> str:
        data = json.loads(text)
        inner: Any = data
        for part in self.place[:-1]:
            inner = inner[part]
        last = self.place[-1]
        if self.kind == "missing":
            del inner[last]
            return json.dumps(data)
        if self.kind in VALUES:
            inner[last] = VALUES[self.kind]
            return json.dumps(data)
        mark = "the place of this mutation"
        old, inner[last] = inner[last], mark
        before, after = json.dumps(data).split(json.dumps(mark))
        if self.kind == "truncated":
            return before
        again = f", {json.dumps(last)}: " if isinstance(last, str) else ", "
        return f"{before}{json.dumps(old)}{again}{json.dumps(old)}{after}"

    def _csv(self, text: str) -> str:
        rows = list(csv.reader(io.StringIO(text, newline="")))
        number, column = int(self.place[1]), rows[0].index(str(self.place[0]))
        if self.kind in CELLS:
            rows[number][column] = CELLS[self.kind]
        elif self.kind == "missing":
            for row in rows:
                del row[column]
        elif self.kind == "column twice":
            for row in rows:
                row.insert(column, row[column])
        elif self.kind == "row twice":
            rows.insert(number, rows[number])
        else:
            rows = [*rows[:number], rows[number][:column]]
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows(rows)
        return buffer.getvalue()


@cache
def places() -> dict[tuple[str, str], list[tuple[str, KeyPath]]]:
    """Files with a key or column and its place in each, by kind of file and key."""
    found: dict[tuple[str, str], list[tuple[str, KeyPath]]] = defaultdict(list)
    for path in sorted(COMMITTED.glob("*/*/*.*")) + sorted(COMMITTED.glob(f"*/{DESCRIPTION}")):
        name = path.relative_to(COMMITTED).as_posix()
        if path.name == DESCRIPTION:
            of_kind = DESCRIPTION, _keys(json.loads(path.read_text()))
        elif path.suffix == ".json":
            of_kind = KINDS[1], _keys(json.loads(path.read_text()))
        else:
            of_kind = f".{path.name.partition('.')[2]}", _columns(path)
        for place, key in of_kind[1]:
            found[of_kind[0], key].append((name, place))
    return dict(found)


def _keys(data: Any, place: KeyPath = (), name: str = "") -> Iterator[tuple[KeyPath, str]]:
    """The place of every key and item, and its name without names and numbers within it."""
    for part, value in data.items() if isinstance(data, dict) else enumerate(data):
        is_named = isinstance(part, int) or name.rpartition(".")[2] in NAMED
        inner = f"{name}.{'*' if is_named else part}".lstrip(".")
        yield (*place, part), inner
        if isinstance(value, dict | list):
            yield from _keys(value, (*place, part), inner)


def _columns(path: Path) -> Iterator[tuple[KeyPath, str]]:
    """Every column with a row of the file, at about a third of it."""
    rows = list(csv.reader(io.StringIO(path.read_text(), newline="")))
    for column in rows[0] if len(rows) > 1 else ():
        yield (column, 1 + (len(rows) - 1) // 3), column


def spoiled(count: int | None = None, seed: int = 1) -> list[Spoiled]:
    """Every key and column with every kind of mutation, each in one file; or `count` of them."""
    rng = random.Random(seed)
    found = []
    for (kind_of_file, _), files in places().items():
        for kind in IN_CSV if kind_of_file.endswith(".csv") else IN_JSON:
            found.append(Spoiled(*rng.choice(files), kind))
    rng.shuffle(found)
    return found if count is None else found[:count]
