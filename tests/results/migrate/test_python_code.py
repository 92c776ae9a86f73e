"""Timed Python code that a refactoring leaves unchanged is proved the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.results.migrate.host_code import Different
from analysis.results.migrate.python_code import compare_python

WORKLOAD = '''"""Bytes to copy."""

from os import sched_getaffinity
from threading import Thread

import numpy as np

from analysis.measure.cell import Operation, Skip

from .draws import rows_of

POISON = 0xA5
CHUNK = 4096


class Workload:
    """Draws the bytes of each case."""

    def prepare(self, case):
        return Copy(rows_of(case["n"]), np.empty(case["n"]))


class Copy(Operation):
    def __init__(self, source, target):
        self.source, self.target = source, target

    def launch(self, stream):
        np.copyto(self.target, self.source)

    def poison(self):
        self.target[:] = POISON

    def check(self):
        return _difference(self.source, self.target)


def _difference(expected, got):
    """The first byte that differs."""
    count = len(sched_getaffinity(0))
    for start in range(0, len(got), CHUNK):
        Thread(target=print, args=(count,))
    return Skip
'''
DRAWS = "def rows_of(count):\n    return list(range(count))\n"
SAME = [
    ("from analysis.measure.cell import Operation, Skip", "from analysis.api import Operation"),
    (
        "from analysis.measure.cell import Operation, Skip",
        "from analysis.measure.cell import Skip\nfrom analysis.api import Operation",
    ),
    ("Draws the bytes of each case.", "Makes input."),
    ("np.copyto(self.target, self.source)", "np.copyto(  self.target, self.source)  # all of it"),
    ("return _difference(self.source, self.target)", "return None"),
    ("len(sched_getaffinity(0))", "1"),
    ("CHUNK = 4096", "CHUNK = 8192"),
    ('    """The first byte that differs."""\n', ""),
    ("from threading import Thread\n", "from multiprocessing import Process as Thread\n"),
]
DIFFERENT = [
    (
        "from analysis.measure.cell import Operation, Skip",
        "from analysis.measure.cell import Skip as Operation",
    ),
    ("np.copyto(self.target, self.source)", "np.copyto(self.source, self.target)"),
    ("POISON = 0xA5", "POISON = 0"),
    ('np.empty(case["n"])', 'np.zeros(case["n"])'),
    ("import numpy as np", "import cupy as np"),
    ("self.target[:] = POISON", "self.target[:] = POISON\n        CHUNK"),
    ("def poison(self)", "def poison(self, count=CHUNK)"),
]


def files(folder: Path, workload: str, draws: str = DRAWS) -> dict[str, Path]:
    folder.mkdir()
    texts = {"workload.py": workload, "draws.py": draws}
    for name, text in texts.items():
        (folder / name).write_text(text)
    return {name: folder / name for name in texts}


@pytest.mark.parametrize(("old", "new"), SAME)
def test_untimed_code_may_change(tmp_path: Path, old: str, new: str) -> None:
    assert WORKLOAD.count(old) == 1
    before = files(tmp_path / "old", WORKLOAD)
    after = files(tmp_path / "new", WORKLOAD.replace(old, new))
    assert compare_python(before, after) == compare_python(before, before)


@pytest.mark.parametrize(("old", "new"), DIFFERENT)
def test_timed_code_may_not_change(tmp_path: Path, old: str, new: str) -> None:
    assert WORKLOAD.count(old) == 1
    before = files(tmp_path / "old", WORKLOAD)
    with pytest.raises(Different, match=r"workload\.py: "):
        compare_python(before, files(tmp_path / "new", WORKLOAD.replace(old, new)))


def test_other_data_are_seen_in_the_file_that_draws_them(tmp_path: Path) -> None:
    before = files(tmp_path / "old", WORKLOAD)
    with pytest.raises(Different, match=r"draws\.py: rows_of"):
        compare_python(
            before,
            files(tmp_path / "new", WORKLOAD, DRAWS.replace("range(count)", "range(1, count)")),
        )


def test_check_called_by_timed_code_counts(tmp_path: Path) -> None:
    timed = WORKLOAD.replace("np.copyto(", "self.check()\n        np.copyto(")
    before = files(tmp_path / "old", timed)
    with pytest.raises(Different, match=r"workload\.py: "):
        compare_python(before, files(tmp_path / "new", timed.replace("CHUNK = 4096", "CHUNK = 1")))


def test_a_module_of_another_study_may_move_as_the_map_says(tmp_path: Path) -> None:
    timed = WORKLOAD.replace("from .draws", "from other.draws")
    before = files(tmp_path / "old", timed)
    after = files(tmp_path / "new", timed.replace("from other.draws", "from kernels.other.draws"))
    moved = {"other/draws.py": "kernels/other/draws.py"}
    assert compare_python(before, after, lambda path: moved.get(path, path))
    with pytest.raises(Different, match=r"workload\.py: from other\.draws import rows_of"):
        compare_python(before, after)


NAMES = '''"""Work."""

import gc

LIMIT = 8
SHARED = 3


class Workload:
    def launch(self, size, *, spare=0):
        counts = [share(size, part) for part in range(LIMIT)]
        total = spare
        for count in counts:
            total += count
        key = lambda value: value + total
        return max(counts, key=key), self.module.SHARED, shown(size)


def share(size, part):
    def rest():
        left = size - part
        return left
    return rest()


def shown(size):
    one, other = size, LIMIT
    return locals()
'''
RENAMED = [
    [("counts", "sizes")],
    [("counts", "sizes"), ("total", "counts"), ("sizes", "total")],
    [("LIMIT", "MAX_PARTS")],
    [("share(", "part_of("), ("left", "size_left")],
    [("key = ", "order = "), ("key=key", "key=order")],
]
OTHER = [
    [("for count in counts", "for counts in counts")],
    [("key=key", "key=len")],
    [("value + total", "total + total")],
    [("lambda value: value", "lambda total: value")],
    [("spare", "extra")],
    [("SHARED", "COMMON")],
    [("one, other", "first, other")],
    [("def launch(self, size", "def launch(self, bytes")],
    [("total += count", "total += part")],
    [("class Workload", "class Work")],
    [("left = size", "gc = size"), ("return left", "return gc")],
    [("max(counts", "max(total")],
    [("LIMIT)]", "SHARED)]")],
]


def replaced(text: str, changes: list[tuple[str, str]]) -> str:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("changes", RENAMED)
def test_a_name_that_one_file_uses_may_change(
    tmp_path: Path, changes: list[tuple[str, str]]
) -> None:
    before = files(tmp_path / "old", NAMES)
    after = files(tmp_path / "new", replaced(NAMES, changes))
    assert compare_python(before, after) == compare_python(before, before)


@pytest.mark.parametrize("changes", OTHER)
def test_name_with_another_meaning_is_a_difference(
    tmp_path: Path, changes: list[tuple[str, str]]
) -> None:
    before = files(tmp_path / "old", NAMES)
    with pytest.raises(Different):
        compare_python(before, files(tmp_path / "new", replaced(NAMES, changes)))
